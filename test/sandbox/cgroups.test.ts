import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { findProcess } from '../../src/process-tree.ts';
import { type Cgroups, closeCgroups, openCgroups, sweepCgroups } from '../../src/sandbox/cgroups.ts';
import { temporaryFolder } from '../temporary-folder.ts';

/** Nobody on this machine. */
const USER = 968_332;
/** No other server's. */
const RUNTIME = `/test/of/control/groups/${process.pid}`;

/** Plain folders stand for control groups: both are removed by rmdir, and only if nothing is in them. */
function groupsIn(folder: string, ...names: string[]): Cgroups {
  for (const name of names) mkdirSync(join(folder, name), { recursive: true });
  return { version: 2, folders: { memory: folder, pids: folder } };
}

/** How a zygote with this process's id and start names its folder. */
function ownName(pid = process.pid): string {
  return `z${pid}-${findProcess(pid)?.started}`;
}

describe('removing the control groups of zygotes that have ended', () => {
  it('removes them with those of their sessions', () => {
    const folder = temporaryFolder();
    sweepCgroups(groupsIn(folder, 'z999999999-5', 'z999999999-6/1', 'z999999999-6/2'));
    expect(readdirSync(folder)).toEqual([]);
  });

  it('keeps the groups of a zygote that lives', () => {
    const folder = temporaryFolder();
    sweepCgroups(groupsIn(folder, `${ownName()}/1`));
    expect(readdirSync(folder)).toEqual([ownName()]);
    expect(existsSync(join(folder, ownName(), '1'))).toBe(true);
  });

  it('does not take a later process with the same id for the zygote', () => {
    const folder = temporaryFolder();
    sweepCgroups(groupsIn(folder, `z${process.pid}-1/1`));
    expect(readdirSync(folder)).toEqual([]);
  });

  it('keeps a group that a process is still in, and removes the rest', () => {
    const folder = temporaryFolder();
    const groups = groupsIn(folder, 'z999999999-5/1', 'z999999999-5/2');
    writeFileSync(join(folder, 'z999999999-5', '1', 'somebody'), '');
    sweepCgroups(groups);
    expect(readdirSync(join(folder, 'z999999999-5'))).toEqual(['1']);
  });

  it('passes over files, and over folders that are gone already', () => {
    const folder = temporaryFolder();
    const groups = groupsIn(folder);
    writeFileSync(join(folder, 'cgroup.procs'), '');
    sweepCgroups(groups);
    expect(readdirSync(folder)).toEqual(['cgroup.procs']);
    sweepCgroups({ version: 1, folders: { memory: join(folder, 'gone') } });
  });
});

describe('closing control groups', () => {
  it('removes the folder itself, in each hierarchy', async () => {
    const folder = temporaryFolder();
    const folders = { memory: join(folder, 'memory'), pids: join(folder, 'pids') };
    for (const one of Object.values(folders)) groupsIn(one, 'z999999999-5/1');
    await closeCgroups({ version: 1, folders });
    expect(readdirSync(folder)).toEqual([]);
  });

  it('waits for processes that are just ending', async () => {
    const folder = temporaryFolder();
    const groups = groupsIn(join(folder, 'own'), 'z999999999-5/1');
    const last = join(folder, 'own', 'z999999999-5', '1', 'somebody');
    writeFileSync(last, '');
    const closed = closeCgroups(groups);
    expect(readdirSync(folder)).toEqual(['own']);
    rmSync(last);
    await closed;
    expect(readdirSync(folder)).toEqual([]);
  });

  it('leaves the folder to the zygotes that live on', async () => {
    const folder = temporaryFolder();
    await closeCgroups(groupsIn(folder, ownName(), 'z999999999-5'));
    expect(readdirSync(folder)).toEqual([ownName()]);
  });
});

const groups = process.getuid?.() === 0 ? openCgroups(RUNTIME, USER) : undefined;
if (groups) await closeCgroups(groups);

describe.skipIf(!groups)('control groups of this machine (as root, where it lets us)', () => {
  function open(runtime = RUNTIME): Cgroups {
    const opened = openCgroups(runtime, USER);
    onTestFinished(() => opened && closeCgroups(opened));
    if (!opened) throw new Error('there were some a moment ago');
    return opened;
  }

  it('are folders of ours that belong to the user', () => {
    const { folders } = open();
    expect(Object.keys(folders)).toContain('memory');
    for (const folder of Object.values(folders)) {
      expect(folder).toMatch(/\/cuvette-[0-9a-f]{8}$/);
      expect(statSync(folder).uid).toBe(USER);
      expect(statSync(join(folder, 'cgroup.procs')).uid).toBe(USER);
    }
  });

  it('give the user nothing by which the folder itself is limited', () => {
    for (const folder of Object.values(open().folders)) {
      const given = readdirSync(folder).filter((name) => statSync(join(folder, name)).uid === USER);
      expect(['cgroup.procs', 'cgroup.subtree_control', 'tasks']).toEqual(expect.arrayContaining(given));
    }
  });

  it('are the same when they are opened twice, and gone when they are closed', async () => {
    const first = open();
    expect(open()).toEqual(first);
    await closeCgroups(first);
    for (const folder of Object.values(first.folders)) expect(existsSync(folder)).toBe(false);
  });

  it('are not those of another runtime folder', () => {
    const [own, others] = [RUNTIME, `${RUNTIME}-other`].map((runtime) => Object.values(open(runtime).folders));
    expect(own?.filter((folder) => others?.includes(folder))).toEqual([]);
  });

  it('are kept as long as a process is in one of them', async () => {
    const { folders } = open();
    const child = spawn('sleep', ['60']);
    const ended = once(child, 'exit');
    onTestFinished(() => void child.kill('SIGKILL'));
    const own = join(folders.memory ?? '', ownName(child.pid));
    mkdirSync(own);
    writeFileSync(join(own, 'cgroup.procs'), String(child.pid));
    expect(readFileSync(join(own, 'cgroup.procs'), 'utf8').trim()).toBe(String(child.pid));
    sweepCgroups({ version: 1, folders });
    expect(existsSync(own)).toBe(true);
    expect(() => rmdirSync(own)).toThrow('EBUSY');
    child.kill('SIGKILL');
    await ended;
    await closeCgroups({ version: 1, folders });
    expect(existsSync(own)).toBe(false);
  });
});

/** The channel of tools, in the hands of a program that keeps to it, and of one that does not. */

import { execFileSync, spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  bashPrelude,
  openToolChannel,
  pythonPrelude,
  type ToolCall,
  type ToolChannel,
} from '../../src/sessions/tool-channel.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const isRoot = process.getuid?.() === 0;
const SOMEBODY = 54_321;

/** A channel in a workspace, and beside that a folder that nothing may reach. */
function open(owner?: number) {
  const root = temporaryFolder();
  const workspace = join(root, 'workspace');
  const outside = join(root, 'outside');
  for (const folder of [workspace, outside]) mkdirSync(folder);
  const secret = join(outside, 'secret');
  writeFileSync(secret, '"secret"');
  const channel = openToolChannel(workspace, owner);
  onTestFinished(() => channel.close());
  const folder = join(workspace, channel.name);
  const path = (name: string) => join(folder, name);
  return {
    workspace,
    outside,
    secret,
    channel,
    folder,
    path,
    makeFifo: (name: string) => void execFileSync('mkfifo', [path(name)]),
    /** As a program asks, which has left what it likes under that mark. */
    ask(mark: string): Promise<ToolCall> {
      const asked = new Promise<ToolCall>((resolve) => channel.onCall(resolve));
      writeFileSync(path('calls'), `${mark} tool\n`);
      return asked;
    },
  };
}

function answerAll(channel: ToolChannel, give: (call: ToolCall) => unknown): void {
  channel.onCall((call) => {
    try {
      channel.answer({ call_id: call.id, result: give(call) });
    } catch (error) {
      channel.answer({ call_id: call.id, is_error: true, error_message: String(error) });
    }
  });
}

async function run(program: string, args: string[], user?: number): Promise<string> {
  const who = user === undefined ? {} : { uid: user, gid: user };
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'], ...who });
  return text(child.stdout);
}

describe('a program that calls tools', () => {
  const give = ({ name, input }: ToolCall) => {
    if (name === 'fail') throw new Error('no luck');
    return { name, input };
  };

  it('in bash gets its answers', async () => {
    const { channel, folder, path } = open();
    answerAll(channel, give);
    channel.put('tools.sh', bashPrelude(folder, ['tell', 'fail']));
    const code = `. '${path('tools.sh')}'; tell '{"a":[1,"ü"]}'; tell; tell plain; fail '{}' 2>&1 || echo failed`;
    expect((await run('bash', ['-c', code])).split('\n')).toEqual([
      '{"name":"tell","input":{"a":[1,"ü"]}}',
      '{"name":"tell","input":{}}',
      '{"name":"tell","input":"plain"}',
      'fail: Error: no luck',
      'failed',
      '',
    ]);
  });

  it('in Python gets its answers', async () => {
    const { channel, folder } = open();
    answerAll(channel, give);
    const program = `
import asyncio
async def main():
    print(await asyncio.gather(*(tell(n=n) for n in range(3))))
    try:
        await fail()
    except RuntimeError as error:
        print(error)
asyncio.run(main())`;
    const shown = await run('python3', ['-c', pythonPrelude(folder, ['tell', 'fail']) + program]);
    expect(shown).toBe(
      `[${[0, 1, 2].map((n) => `{'name': 'tell', 'input': {'n': ${n}}}`).join(', ')}]\nError: no luck\n`,
    );
  });

  it('finds a folder and files that are closed to others, and leaves none', async () => {
    const { channel, workspace, folder, path, makeFifo, ask } = open();
    channel.put('tools.sh', 'true');
    makeFifo('x.out');
    channel.answer({ call_id: (await ask('x')).id, result: 1 });
    expect(readdirSync(folder).sort()).toEqual(['calls', 'tools.sh', 'x.out', 'x.result']);
    expect(lstatSync(folder).mode & 0o777).toBe(0o700);
    for (const name of ['calls', 'tools.sh', 'x.result']) expect(lstatSync(path(name)).mode & 0o777).toBe(0o600);
    channel.close();
    expect(readdirSync(workspace)).toEqual([]);
  });

  it.runIf(isRoot)('as another user has a folder of its own', async () => {
    const { channel, workspace, folder, path, makeFifo, ask } = open(SOMEBODY);
    chmodSync(dirname(workspace), 0o711);
    chownSync(workspace, SOMEBODY, SOMEBODY);
    channel.put('tools.sh', bashPrelude(folder, ['tell']));
    makeFifo('x.out');
    channel.answer({ call_id: (await ask('x')).id, result: 1 });
    for (const one of [folder, path('calls'), path('tools.sh'), path('x.result')]) {
      const { uid, gid } = lstatSync(one);
      expect([one, uid, gid]).toEqual([one, SOMEBODY, SOMEBODY]);
    }
    answerAll(channel, give);
    expect(await run('bash', ['-c', `. '${path('tools.sh')}'; tell 1`], SOMEBODY)).toBe('{"name":"tell","input":1}\n');
  });
});

describe('a program that misuses the tool channel', () => {
  it.each<[string, (place: ReturnType<typeof open>) => void]>([
    ['a symlink', ({ secret, path }) => symlinkSync(secret, path('x.in'))],
    ['a FIFO', ({ makeFifo }) => makeFifo('x.in')],
    ['a folder', ({ path }) => mkdirSync(path('x.in'))],
    ['nothing', () => {}],
  ])('with %s for a question has asked nothing', async (_, prepare) => {
    const place = open();
    prepare(place);
    expect((await place.ask('x')).input).toBe('');
  });

  it('by an endless question has only the beginning of it read', async () => {
    const { path, ask } = open();
    writeFileSync(path('x.in'), '');
    truncateSync(path('x.in'), 2 ** 40);
    expect((await ask('x')).input).toHaveLength(5_000_000);
  });

  it('has nothing written through its links', async () => {
    const { secret, outside, path, channel, makeFifo, ask } = open();
    for (const name of ['x.result', 'x.result.part', 'tools.sh']) symlinkSync(secret, path(name));
    makeFifo('x.out');
    channel.answer({ call_id: (await ask('x')).id, result: 'given' });
    channel.put('tools.sh', 'true');
    expect(readFileSync(secret, 'utf8')).toBe('"secret"');
    expect(readdirSync(outside)).toEqual(['secret']);
    expect(readFileSync(path('x.result'), 'utf8')).toBe('"given"\n');
    expect(lstatSync(path('x.result')).isFile()).toBe(true);
  });

  it('gets its answers only by a FIFO, not by another file in its place', async () => {
    const { workspace, path, channel, ask } = open();
    const own = join(workspace, 'own.txt');
    writeFileSync(own, 'own');
    linkSync(own, path('x.out'));
    channel.answer({ call_id: (await ask('x')).id, result: 1 });
    expect(readFileSync(own, 'utf8')).toBe('own');
  });

  it('cannot make the server write elsewhere by a link in place of the folder', async () => {
    const { workspace, outside, secret, folder, channel, ask } = open();
    const moved = join(workspace, 'moved');
    renameSync(folder, moved);
    symlinkSync(outside, folder);
    writeFileSync(join(outside, 'x.in'), '"secret"');
    execFileSync('mkfifo', [join(outside, 'x.out'), join(moved, 'x.out')]);
    writeFileSync(join(moved, 'x.in'), '"asked"');
    execFileSync('ln', ['-s', join(moved, 'calls'), join(outside, 'calls')]);

    const { id, input } = await ask('x');
    expect(input).toBe('asked');
    channel.answer({ call_id: id, result: 'given' });
    channel.put('tools.sh', 'true');
    expect(readFileSync(join(moved, 'x.result'), 'utf8')).toBe('"given"\n');
    channel.close();
    expect(readdirSync(moved)).toEqual([]);
    expect(readdirSync(outside).sort()).toEqual(['calls', 'secret', 'x.in', 'x.out']);
    expect(readFileSync(secret, 'utf8')).toBe('"secret"');
  });

  it('loses nothing outside when the folder is removed, whatever it has put in there', () => {
    const { workspace, outside, secret, folder, path, channel } = open();
    symlinkSync(outside, path('link'));
    symlinkSync(secret, path('x.in'));
    mkdirSync(path('sub'));
    symlinkSync(outside, path('sub/link'));
    channel.close();
    expect(readFileSync(secret, 'utf8')).toBe('"secret"');
    expect(readdirSync(folder)).toEqual(['sub']);
    expect(readdirSync(workspace)).toEqual([channel.name]);
  });

  it('may have removed the whole folder', async () => {
    const { workspace, folder, channel, ask } = open();
    const { id } = await ask('x');
    execFileSync('rm', ['-r', folder]);
    channel.answer({ call_id: id, result: 1 });
    channel.close();
    expect(readdirSync(workspace)).toEqual([]);
  });

  it('that talks without asking is no longer listened to', async () => {
    const { path, channel } = open();
    channel.onCall(() => {});
    await run('bash', ['-c', 'head -c 20000000 /dev/zero > "$1" 2> /dev/null', 'bash', path('calls')]);
    expect(() => openSync(path('calls'), constants.O_WRONLY | constants.O_NONBLOCK)).toThrow('ENXIO');
  });

  it('that asks without end is no longer listened to', async () => {
    const { path, channel } = open();
    let asked = 0;
    channel.onCall(({ id }) => {
      asked += 1;
      channel.answer({ call_id: id, result: 1 });
    });
    await run('bash', ['-c', 'yes "x tool" | head -n 100000 > "$1" 2> /dev/null', 'bash', path('calls')]);
    expect(() => openSync(path('calls'), constants.O_WRONLY | constants.O_NONBLOCK)).toThrow('ENXIO');
    await vi.waitFor(() => expect(asked).toBe(2000), { timeout: 60_000 });
  });

  it.runIf(existsSync('/proc/self/fd'))('does not make the server hold ever more descriptors open', async () => {
    const { path, channel, makeFifo, ask } = open();
    makeFifo('x.out');
    for (let count = 0; count < 300; count++) channel.answer({ call_id: (await ask('x')).id, result: 1 });
    const held = readdirSync('/proc/self/fd').filter((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`) === path('x.out');
      } catch {
        return false; // The one that the list was read from.
      }
    });
    expect(held.length).toBe(256);
  });

  it('that asks too much gets an error from then on', async () => {
    const { path, makeFifo, ask } = open();
    makeFifo('x.out');
    writeFileSync(path('x.in'), 'x'.repeat(5_000_000));
    for (let count = 0; count < 13; count++) expect((await ask('x')).input).toHaveLength(5_000_000);
    writeFileSync(path('calls'), 'x tool\n');
    const bell = `IFS= read -r word < "$1/x.out"; echo "$word"; cat "$1/x.result"`;
    expect(await run('bash', ['-c', bell, 'bash', dirname(path('x.in'))])).toMatch(/^error\nMore than 64000000 /);
  });
});

it('a tool channel that is closed twice closes no descriptor of others', () => {
  const { channel, secret } = open();
  channel.close();
  const others = Array.from({ length: 5 }, () => openSync(secret, 'r'));
  channel.close();
  for (const fd of others) {
    expect(fstatSync(fd).isFile()).toBe(true);
    closeSync(fd);
  }
});

import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  chooseSandbox,
  type SandboxChoice,
  type SandboxRequest,
  tryToConfine,
} from '../../src/sandbox/choose-sandbox.ts';
import { detectHostCapabilities } from '../../src/sandbox/host-capabilities.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { optionsIn } from './open-sandbox.ts';
import { script } from './script.ts';

const CAN = `echo '{"seccomp": true}'`;
const CANNOT = `echo 'a first line' >&2; echo 'bwrap: No permissions to create a namespace' >&2; exit 1`;

/** A machine whose bubblewrap does as told when it is asked to confine; without one, there is none on PATH. */
function machineWith(confine?: string): { folder: string; python: string } {
  const folder = temporaryFolder();
  script(folder, 'python', `echo '["/usr"]'`);
  if (confine !== undefined) {
    script(folder, 'bwrap', `if [ "$1" = --version ]; then echo 'bubblewrap 9.9.9'; else ${confine}; fi`);
  }
  vi.stubEnv('PATH', folder);
  return { folder, python: join(folder, 'python') };
}

afterEach(() => void vi.unstubAllEnvs());

async function choose(wish: SandboxRequest, confine: string | undefined, settings = {}): Promise<SandboxChoice> {
  const { folder, python } = machineWith(confine);
  const choice = await chooseSandbox(wish, python, optionsIn(folder, settings));
  onTestFinished(() => choice.sandbox?.close());
  return choice;
}

describe.skipIf(process.platform !== 'linux')('choosing the sandbox', () => {
  const everywhere = [true, false];

  it.each(everywhere.flatMap((isOpen) => (['auto', 'on'] as const).map((sandbox) => ({ sandbox, isOpen }))))(
    'confines code if the machine can do it, for %j',
    async (wish) => {
      const { sandbox, description } = await choose(wish, CAN);
      expect(sandbox).toBeDefined();
      expect(description).toMatch(
        /^on \(bubblewrap 9\.9\.9, (cgroup v[12] \([a-z, ]+\)|no cgroup), seccomp, no network\)$/,
      );
    },
  );

  it.each(everywhere.flatMap((isOpen) => [CAN, CANNOT].map((confine) => ({ isOpen, confine }))))(
    'leaves code unconfined with --sandbox off, whatever the machine can do: %j',
    async ({ isOpen, confine }) => {
      expect(await choose({ sandbox: 'off', isOpen }, confine)).toEqual({
        sandbox: undefined,
        description: 'none (code runs as you: --sandbox off)',
      });
    },
  );

  it.each(everywhere)('fails with --sandbox on if code cannot be confined (open to others: %s)', async (isOpen) => {
    const refused = expect(choose({ sandbox: 'on', isOpen }, CANNOT)).rejects;
    await refused.toMatchObject({
      code: 'sandbox_unavailable',
      exitCode: 69,
      message: expect.stringMatching(
        /^Code cannot be confined on this machine: bwrap: No permissions to create a namespace\. .+ Or start without: --sandbox off\.$/,
      ),
    });
  });

  it('fails if the service is open to others and code cannot be confined', async () => {
    await expect(choose({ sandbox: 'auto', isOpen: true }, CANNOT)).rejects.toMatchObject({
      code: 'sandbox_unavailable',
      message: expect.stringContaining('so the service is not opened to others than this machine'),
    });
  });

  it('leaves code unconfined and says so if only this machine reaches the service and code cannot be confined', async () => {
    const { sandbox, description } = await choose({ sandbox: 'auto', isOpen: false }, CANNOT);
    expect(sandbox).toBeUndefined();
    expect(description).toMatch(/^none \(code runs as you, unconfined: bwrap: No permissions to create a namespace\. /);
  });

  it('says how to install bubblewrap if it is missing', async () => {
    const { description } = await choose({ sandbox: 'auto', isOpen: false }, undefined);
    expect(description).toMatch(/^none \(.*bubblewrap is not installed\. Install bubblewrap: .+ bubblewrap\)$/);
    await expect(choose({ sandbox: 'on', isOpen: false }, undefined)).rejects.toThrow(/Install bubblewrap: /);
    await expect(choose({ sandbox: 'auto', isOpen: true }, undefined)).rejects.toThrow(/Install bubblewrap: /);
  });

  it('leaves code unconfined if bubblewrap itself cannot be run', async () => {
    const { folder, python } = machineWith();
    script(folder, 'bwrap', 'exit 1');
    const choice = await chooseSandbox({ sandbox: 'auto', isOpen: false }, python, optionsIn(folder));
    expect(choice.sandbox).toBeUndefined();
    expect(choice.description).toMatch(/^none \(/);
  });

  it.each([
    [{ network: 'allow' }, 'network allowed'],
    [{ network: 'packages.example.org' }, 'network by an allow-list'],
    [{ network: 'none' }, 'no network'],
  ])('describes what code may reach: %j', async (settings, words) => {
    const { description } = await choose({ sandbox: 'on', isOpen: false }, CAN, settings);
    expect(description.endsWith(`, ${words})`), description).toBe(true);
  });

  it('describes that there is no seccomp filter if there is none', async () => {
    const { description } = await choose({ sandbox: 'on', isOpen: false }, `echo '{"seccomp": false}'`);
    expect(description).toContain('no seccomp filter for this processor');
  });
});

describe.skipIf(process.platform !== 'linux')('trying to confine code', () => {
  it('needs a Python', async () => {
    const { folder } = machineWith(CAN);
    expect(await tryToConfine(await detectHostCapabilities(), undefined, optionsIn(folder))).toEqual({
      problem: 'there is no Python',
    });
  });

  it('tells what the machine is, where it is no Linux', async () => {
    const { folder, python } = machineWith(CAN);
    const machine = { ...(await detectHostCapabilities()), platform: 'darwin' as const };
    expect(await tryToConfine(machine, python, optionsIn(folder))).toEqual({ problem: 'darwin has no namespaces' });
  });

  it.each([
    ['tells the last line that was said', CANNOT, 'bwrap: No permissions to create a namespace'],
    ['tells that nothing was said', 'exit 3', 'Command failed'],
    ['takes nonsense for a failure', 'echo nonsense', 'JSON'],
  ])('%s', async (_, confine, problem) => {
    const { folder, python } = machineWith(confine);
    const tried = await tryToConfine(await detectHostCapabilities(), python, optionsIn(folder));
    expect(tried).toEqual({ problem: expect.stringContaining(problem) });
  });

  it.each([CAN, CANNOT])('leaves none of its files behind', async (confine) => {
    const { folder, python } = machineWith(confine);
    const tried = await tryToConfine(await detectHostCapabilities(), python, optionsIn(folder));
    if ('sandbox' in tried) await tried.sandbox.close();
    expect(existsSync(join(folder, 'run', 'c', 'z'))).toBe(true);
    expect(readdirSync(join(folder, 'run', 'c', 'z'))).toEqual([]);
  });
});

/**
 * Chooses whether code is confined, from what was asked for and what the machine can do, and describes the choice. Code is never left
 * unconfined without saying so.
 */

import { CuvetteError, messageOf } from '../errors.ts';
import { adviceFor, detectHostCapabilities, type HostCapabilities } from './host-capabilities.ts';
import { openSandbox, type Sandbox, type SandboxOptions } from './sandbox.ts';

export interface SandboxChoice {
  sandbox: Sandbox | undefined;
  /** For banners and for /health: begins with `on` or with `none`. */
  description: string;
}

export interface SandboxRequest {
  sandbox: 'auto' | 'on' | 'off';
  /** Whether others than this machine's own users can come. */
  isOpen: boolean;
}

export async function chooseSandbox(
  wish: SandboxRequest,
  python: string | undefined,
  options: Omit<SandboxOptions, 'bubblewrap'>,
): Promise<SandboxChoice> {
  if (wish.sandbox === 'off') return { sandbox: undefined, description: 'none (code runs as you: --sandbox off)' };
  const machine = await detectHostCapabilities();
  const tried = await tryToConfine(machine, python, options);
  if ('sandbox' in tried) return tried;
  const advice = adviceFor(machine, tried.problem);
  if (wish.sandbox === 'on')
    throw new CuvetteError(
      'sandbox_unavailable',
      `Code cannot be confined on this machine: ${tried.problem}. ${advice} Or start without: --sandbox off.`,
    );
  if (wish.isOpen)
    throw new CuvetteError(
      'sandbox_unavailable',
      `Code cannot be confined on this machine (${tried.problem}), so the service is not opened to others than this machine. ` +
        `${advice} Or say that code of others may run as you: --sandbox off.`,
    );
  return { sandbox: undefined, description: `none (code runs as you, unconfined: ${tried.problem}. ${advice})` };
}

/** What `doctor` says. */
export async function tryToConfine(
  machine: HostCapabilities,
  python: string | undefined,
  options: Omit<SandboxOptions, 'bubblewrap'>,
): Promise<{ sandbox: Sandbox; description: string } | { problem: string }> {
  if (machine.platform !== 'linux') return { problem: `${machine.platform} has no namespaces` };
  if (!machine.bubblewrap) return { problem: 'bubblewrap is not installed' };
  if (!python) return { problem: 'there is no Python' };
  const sandbox = openSandbox({ ...options, bubblewrap: machine.bubblewrap.path });
  try {
    const { seccomp } = await sandbox.rehearse(python);
    return { sandbox, description: describe(machine.bubblewrap.version, sandbox, seccomp) };
  } catch (error) {
    await sandbox.close();
    const { stderr } = error as { stderr?: string };
    return { problem: stderr?.trim().split('\n').at(-1) || messageOf(error) };
  }
}

function describe(version: string, { cgroups, policy }: Sandbox, seccomp: boolean): string {
  const groups = cgroups ? `cgroup v${cgroups.version} (${Object.keys(cgroups.folders).join(', ')})` : 'no cgroup';
  const network = { none: 'no network', proxy: 'network by an allow-list', allow: 'network allowed' }[policy.network];
  return `on (bubblewrap ${version}, ${groups}, ${seccomp ? 'seccomp' : 'no seccomp filter for this processor'}, ${network})`;
}

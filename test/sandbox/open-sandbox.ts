/** A sandbox for one test, in a folder of its own, with whatever stands for bubblewrap. */

import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { policyOf } from '../../src/sandbox/policy.ts';
import { openSandbox, type Sandbox, type SandboxOptions } from '../../src/sandbox/sandbox.ts';
import { temporaryFolder } from '../temporary-folder.ts';

/** The options of a sandbox that shows nothing but the system. */
export function optionsIn(
  folder: string,
  settings: Record<string, unknown> = {},
): Omit<SandboxOptions, 'bubblewrap'> & { runtime: string; sessions: string } {
  return {
    policy: policyOf(readConfig(settings, {})),
    runtime: join(folder, 'run'),
    sessions: join(folder, 'sessions'),
    tools: [],
    readable: [],
  };
}

export function sandboxFor(different: Partial<SandboxOptions> = {}, settings: Record<string, unknown> = {}): Sandbox {
  const sandbox = openSandbox({
    bubblewrap: '/no/such/bwrap',
    ...optionsIn(temporaryFolder(), settings),
    ...different,
  });
  onTestFinished(() => sandbox.close());
  return sandbox;
}

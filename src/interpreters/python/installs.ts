/** Answers a session's question for a missing module: installs what provides it, or says what the user can do. */

import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { withLock } from '../../file-lock.ts';
import { runCommand } from '../../run-command.ts';
import type { InstallAnswer } from '../interpreter.ts';
import { type Environment, installedVersions, normalise, scratchOf } from './environment.ts';
import { resolvePackage } from './package-names.ts';
import type { PythonInfo } from './probe.ts';

const INSTALL_TIMEOUT_MS = 10 * 60_000;
const OFFLINE =
  /(Temporary failure in name resolution|Name or service not known|Could not resolve|dns error|Network is unreachable|Connection refused|NewConnectionError|Failed to establish|error sending request|timed out)/i;
const NO_SUCH =
  /(No matching distribution found|was not found in the package registry|not found in the package registry|No solution found)/i;

const NO_PACKAGE = 'No package can have that name; it may be a module of your own that is not on the path.';

export interface Installed {
  module: string;
  distribution: string;
  version: string;
  seconds: number;
}

export interface InstallOutcome {
  answer: InstallAnswer;
  installed?: Installed;
}

/** For the builtin interpreter: installs into the managed environment. */
export async function installForBuiltin(
  environment: Environment,
  module: string,
  options: { enabled: boolean; isShared: boolean; hasWayOut: boolean; signal: AbortSignal },
): Promise<InstallOutcome> {
  const state = await environment.settled(options.signal);
  if (state.phase === 'making') return refuse('The managed environment is still being made; try again in a moment.');
  if (state.phase === 'failed') return refuse(`Nothing can be installed: ${state.problem}. Run: cuvette doctor.`);
  const { python } = state;
  // The session may have started on the plain Python, before the environment was there.
  if (provides(python.site, module)) return { answer: { installed: true, paths: [python.site] } };

  const resolution = resolvePackage(module);
  if (resolution.kind === 'misspelt') {
    return refuse(
      `Did you mean ${resolution.suggestion}? Nothing was installed; if ${module} is right, run: %pip install ${module}`,
    );
  }
  if (resolution.kind === 'impossible') return refuse(NO_PACKAGE);
  if (options.hasWayOut) return refuse(`It is not installed here. Run: !pip install ${resolution.distribution}`);
  if (options.isShared) {
    return refuse(`It is not installed here. Whoever runs this service can install it: ${resolution.distribution}`);
  }
  if (!options.enabled) {
    return refuse(`Automatic installs are off; run: %pip install ${resolution.distribution}`);
  }
  return withLock(`${state.folder}.lock`, options.signal, () =>
    install(environment, python, module, resolution.distribution, resolution.kind === 'unknown', options.signal),
  );
}

/** For a Python of the user's own: never touched, only advised on. */
export function adviseExternal(python: string, module: string): InstallOutcome {
  const resolution = resolvePackage(module);
  if (resolution.kind === 'misspelt') return refuse(`Did you mean ${resolution.suggestion}?`);
  if (resolution.kind === 'impossible') return refuse(NO_PACKAGE);
  return refuse(
    `This interpreter uses only what its environment has; to add it, run: ${python} -m pip install ${resolution.distribution}`,
  );
}

async function install(
  environment: Environment,
  python: PythonInfo,
  module: string,
  distribution: string,
  isUnknown: boolean,
  signal: AbortSignal,
): Promise<InstallOutcome> {
  const start = performance.now();
  // Of a distribution that nobody here vouches for, only wheels are taken: installing one runs none of its code.
  const result = await runCommand(environment.installCommand(python, [distribution], isUnknown), {
    signal,
    timeout: INSTALL_TIMEOUT_MS,
    scratch: scratchOf(python.prefix),
  });
  if (!result.ok) return refuse(explain(distribution, isUnknown, result.output));
  const version = installedVersions(python.site).get(normalise(distribution)) ?? '?';
  const seconds = (performance.now() - start) / 1000;
  if (!provides(python.site, module)) {
    return refuse(`${distribution} ${version} was installed, but it has no module of that name.`);
  }
  return { answer: { installed: true, paths: [python.site] }, installed: { module, distribution, version, seconds } };
}

function explain(distribution: string, isUnknown: boolean, output: string): string {
  if (OFFLINE.test(output))
    return `${distribution} could not be installed: the package index cannot be reached. Check the network, or install it beforehand.`;
  if (NO_SUCH.test(output)) {
    return isUnknown
      ? `There is no installable package named ${distribution} either; check the spelling.`
      : `${distribution} has no release that fits this Python.`;
  }
  const reason =
    output
      .split('\n')
      .filter((line) => /error/i.test(line))
      .at(-1) ??
    output.split('\n').at(-1) ??
    '';
  return `${distribution} could not be installed: ${reason.trim().slice(0, 300)}`;
}

function provides(site: string, module: string): boolean {
  const path = join(site, ...module.split('.'));
  if (existsSync(path) || existsSync(`${path}.py`)) return true;
  return existsSync(site) && installedExtension(site, module);
}

function installedExtension(site: string, module: string): boolean {
  return readdirSync(site).some((file) => file.startsWith(`${module}.`) && file.endsWith('.so'));
}

function refuse(hint: string): InstallOutcome {
  return { answer: { installed: false, hint } };
}

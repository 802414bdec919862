/** Examines what Cuvette depends on without running code: what `cuvette doctor` says first, and what an operator sees of a service. */

import { join } from 'node:path';
import type { Config } from '../config.ts';
import { messageOf } from '../errors.ts';
import { findEnvironment } from '../interpreters/python/environment.ts';
import { findPython, type PythonInfo } from '../interpreters/python/probe.ts';
import { type Paths, privateFolder, runtimeFolder } from '../paths.ts';
import { tryToConfine } from '../sandbox/choose-sandbox.ts';
import { adviceFor, detectHostCapabilities } from '../sandbox/host-capabilities.ts';
import { policyOf } from '../sandbox/policy.ts';
import { findProgram } from '../search-path.ts';
import { openSessionStore } from '../sessions/session-store.ts';
import { VERSION } from '../version.ts';

export interface Finding {
  name: string;
  state: 'works' | 'missing' | 'broken';
  detail: string;
  /** What to do about it. */
  advice: string | null;
}

type Check = () => string | Promise<string>;

export async function* examineMachine(config: Config, paths: Paths): AsyncGenerator<Finding> {
  const find = () => findPython(config.python);
  yield look('program', () => `Cuvette ${VERSION} on Node ${process.versions.node}, ${process.platform}`);
  yield look('Python', async () => {
    const python = await find();
    return `${python.version} at ${python.executable}`;
  });
  yield look(
    'uv',
    () =>
      findProgram('uv') ??
      absent('not installed; venv and pip are used, which is slower.', 'To speed up installs: pip install uv'),
  );
  yield look('environment', async () => environmentDetail(paths.cache, await find()));
  yield look('runtime folder', () => runtimeFolder(paths.runtime));
  yield look('data folder', () => {
    openSessionStore(paths.data).close();
    return paths.data;
  });
  yield look('cache folder', () => privateFolder(paths.cache));
  yield look('sandbox', () => sandboxDetail(config, paths));
}

class Absent extends Error {
  readonly advice: string | null;

  constructor(detail: string, advice: string | null) {
    super(detail);
    this.advice = advice;
  }
}

export function absent(detail: string, advice: string | null): never {
  throw new Absent(detail, advice);
}

export async function look(name: string, check: Check): Promise<Finding> {
  try {
    return { name, state: 'works', detail: await check(), advice: null };
  } catch (error) {
    const detail = messageOf(error);
    if (error instanceof Absent) return { name, state: 'missing', detail, advice: error.advice };
    return { name, state: 'broken', detail, advice: null };
  }
}

async function environmentDetail(cache: string, base: PythonInfo): Promise<string> {
  const found = await findEnvironment(cache, base);
  if (found) return `Python ${found.python.version} with IPython, numpy, pandas and matplotlib in ${found.folder}`;
  return absent(
    'not made yet; the first server makes it in the background, and sessions run on plain Python until then',
    null,
  );
}

/** Tries to confine a process, as `cuvette serve` does before it starts. */
async function sandboxDetail(config: Config, paths: Paths): Promise<string> {
  const machine = await detectHostCapabilities();
  const python = await findPython(config.python).catch(() => undefined);
  const tried = await tryToConfine(machine, python?.executable, {
    policy: policyOf(config),
    runtime: runtimeFolder(paths.runtime),
    sessions: config.notebooksDir ?? join(paths.data, 'sessions'),
    tools: [],
    readable: [],
  });
  const seen = `kernel ${machine.kernel}, user namespaces: ${machine.userNamespaces || 'none'}`;
  if ('problem' in tried)
    return absent(
      `none: ${tried.problem} (${seen}). cuvette serve runs code as you.`,
      adviceFor(machine, tried.problem),
    );
  await tried.sandbox.close();
  return `${tried.description}; ${seen}. For cuvette serve; cuvette mcp runs code as you, unless --sandbox on`;
}

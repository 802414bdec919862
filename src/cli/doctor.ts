/** `cuvette doctor` checks everything that Cuvette depends on, and says what to do where something is missing. */

import { join } from 'node:path';
import type { Config } from '../config.ts';
import { messageOf } from '../errors.ts';
import { findEnvironment } from '../interpreters/python/environment.ts';
import { findPython, type PythonInfo } from '../interpreters/python/probe.ts';
import { findPaths, type Paths, privateFolder, runtimeFolder } from '../paths.ts';
import { ancestorsOf } from '../process-tree.ts';
import { tryToConfine } from '../sandbox/choose-sandbox.ts';
import { adviceFor, detectHostCapabilities } from '../sandbox/host-capabilities.ts';
import { policyOf } from '../sandbox/policy.ts';
import { findProgram } from '../search-path.ts';
import { openSessionStore } from '../sessions/session-store.ts';
import { chooseServer, chooseService } from '../surfaces/bridge/discovery.ts';
import { readRecords } from '../surfaces/bridge/server-record.ts';
import { VERSION } from '../version.ts';
import { tryLanguages } from './doctor-languages.ts';
import { parseServerFlags } from './server-flags.ts';

interface Finding {
  name: string;
  state: 'works' | 'missing' | 'broken';
  detail: string;
}

type Check = () => string | Promise<string>;

export async function main(args: string[]): Promise<number> {
  const { config, json } = parseServerFlags(args, 'serve');
  const paths = findPaths();
  const all: Finding[] = [];
  for await (const finding of examine(config, paths)) {
    all.push(finding);
    if (!json) process.stdout.write(`${MARKS[finding.state]} ${finding.name.padEnd(15)} ${finding.detail}\n`);
  }
  if (json) process.stdout.write(`${JSON.stringify(all, null, 2)}\n`);
  return all.some(({ state }) => state === 'broken') ? 1 : 0;
}

/** Yields findings one by one, because a call can take a while. */
async function* examine(config: Config, paths: Paths): AsyncGenerator<Finding> {
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
      absent('not installed; venv and pip are used, which is slower. To speed up installs: pip install uv'),
  );
  yield look('environment', async () => environmentDetail(config, paths.cache, await find()));
  yield look('runtime folder', () => runtimeFolder(paths.runtime));
  yield look('data folder', () => {
    openSessionStore(paths.data).close();
    return paths.data;
  });
  yield look('cache folder', () => privateFolder(paths.cache));
  yield look('sandbox', () => sandboxDetail(config, paths));
  yield* tryCalls(config, paths);
  yield look('servers', () => serversDetail(paths.runtime));
}

/** Runs a call in each language, with the settings of a service that is started here. */
async function* tryCalls(config: Config, paths: Paths): AsyncGenerator<Finding> {
  try {
    const base = await findPython(config.python);
    const made = await findEnvironment(paths.cache, base, config.preload);
    const state = made ?? { phase: 'failed' as const, base, problem: 'it has not been made yet' };
    for await (const { language, ...found } of tryLanguages({ config, paths, state }))
      yield { name: `run ${language}`, ...found };
  } catch (error) {
    yield { name: 'calls', state: 'broken', detail: messageOf(error) };
  }
}

const MARKS = { works: '✓', missing: '–', broken: '✗' };

class Absent extends Error {}

function absent(detail: string): never {
  throw new Absent(detail);
}

async function look(name: string, check: Check): Promise<Finding> {
  try {
    return { name, state: 'works', detail: await check() };
  } catch (error) {
    return { name, state: error instanceof Absent ? 'missing' : 'broken', detail: messageOf(error) };
  }
}

async function environmentDetail({ preload }: Config, cache: string, base: PythonInfo): Promise<string> {
  const found = await findEnvironment(cache, base, preload);
  if (found) return `Python ${found.python.version} with IPython, numpy, pandas and matplotlib in ${found.folder}`;
  return absent(
    'not made yet; the first server makes it in the background, and sessions run on plain Python until then',
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
      `none: ${tried.problem} (${seen}). cuvette serve runs code as you. ${adviceFor(machine, tried.problem)}`,
    );
  await tried.sandbox.close();
  return `${tried.description}; ${seen}. For cuvette serve; cuvette mcp runs code as you, unless --sandbox on`;
}

function serversDetail(runtime: string): string {
  const records = readRecords(runtime);
  if (records.length === 0) return absent('none running');
  const caller = { ancestors: ancestorsOf(process.pid), cwd: process.cwd(), env: process.env };
  const mine = (() => {
    try {
      return (chooseServer(records, caller) ?? chooseService(records, caller))?.pid;
    } catch {
      return undefined;
    }
  })();
  return records
    .map(
      ({ pid, kind, project }) =>
        `${pid} (${kind}) in ${project}${pid === mine ? ', which is the one that cuvette run uses here' : ''}`,
    )
    .join('; ');
}

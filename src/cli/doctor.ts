/** `cuvette doctor`: looks at everything that Cuvette depends on, and says what to do where something is missing. */

import { join } from 'node:path';
import { readConfig } from '../config.ts';
import { messageOf } from '../errors.ts';
import { findEnvironment } from '../interpreters/python/environment.ts';
import { findPython } from '../interpreters/python/probe.ts';
import { findPaths, type Paths, privateFolder, runtimeFolder } from '../paths.ts';
import { ancestorsOf } from '../process-tree.ts';
import { tryToConfine } from '../sandbox/choose.ts';
import { adviceFor, lookAtMachine } from '../sandbox/machine.ts';
import { policyOf } from '../sandbox/policy.ts';
import { findProgram } from '../search-path.ts';
import { openStore } from '../sessions/store.ts';
import { chooseServer } from '../surfaces/bridge/discovery.ts';
import { readRecords } from '../surfaces/bridge/server-record.ts';
import { VERSION } from '../version.ts';

interface Finding {
  name: string;
  state: 'works' | 'missing' | 'broken';
  detail: string;
}

type Check = () => string | Promise<string>;

export async function main(args: string[]): Promise<number> {
  const paths = findPaths();
  const findings = [
    await look('program', () => `Cuvette ${VERSION} on Node ${process.versions.node}, ${process.platform}`),
    await look('Python', async () => {
      const python = await findPython(process.env.CUVETTE_PYTHON);
      return `${python.version} at ${python.executable}`;
    }),
    await look(
      'uv',
      () =>
        findProgram('uv') ??
        absent('not installed; venv and pip are used, which is slower. To speed up installs: pip install uv'),
    ),
    await look('environment', () => environmentDetail(paths.cache)),
    await look('runtime folder', () => runtimeFolder(paths.runtime)),
    await look('data folder', () => {
      openStore(paths.data).close();
      return paths.data;
    }),
    await look('cache folder', () => privateFolder(paths.cache)),
    await look('sandbox', () => sandboxDetail(paths)),
    await look('servers', () => serversDetail(paths.runtime)),
  ];
  if (args.includes('--json')) process.stdout.write(`${JSON.stringify(findings, null, 2)}\n`);
  else
    for (const { name, state, detail } of findings)
      process.stdout.write(`${MARKS[state]} ${name.padEnd(15)} ${detail}\n`);
  return findings.some(({ state }) => state === 'broken') ? 1 : 0;
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

async function environmentDetail(cache: string): Promise<string> {
  const found = await findEnvironment(cache, await findPython(process.env.CUVETTE_PYTHON));
  if (found) return `Python ${found.python.version} with IPython, numpy, pandas and matplotlib in ${found.folder}`;
  return absent(
    'not made yet; the first server makes it in the background, and sessions run on plain Python until then',
  );
}

/** Tries it, as `cuvette serve` does before it starts. */
async function sandboxDetail(paths: Paths): Promise<string> {
  const machine = await lookAtMachine();
  const python = await findPython(process.env.CUVETTE_PYTHON).catch(() => undefined);
  const tried = await tryToConfine(machine, python?.executable, {
    policy: policyOf(readConfig({})),
    runtime: runtimeFolder(paths.runtime),
    sessions: join(paths.data, 'sessions'),
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
      return chooseServer(records, caller)?.pid;
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

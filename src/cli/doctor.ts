/** `cuvette doctor` checks everything that Cuvette depends on, and says what to do where something is missing. */

import type { Config } from '../config.ts';
import { messageOf } from '../errors.ts';
import { findEnvironment } from '../interpreters/python/environment.ts';
import { findPython } from '../interpreters/python/probe.ts';
import { findPaths, type Paths } from '../paths.ts';
import { ancestorsOf } from '../process-tree.ts';
import { chooseServer, chooseService } from '../surfaces/bridge/discovery.ts';
import { readRecords } from '../surfaces/bridge/server-record.ts';
import { tryLanguages } from './doctor-languages.ts';
import { absent, examineMachine, type Finding, look } from './findings.ts';
import { parseServerFlags } from './server-flags.ts';

export async function main(args: string[]): Promise<number> {
  const { config, json } = parseServerFlags(args, 'serve');
  const paths = findPaths();
  const all: Finding[] = [];
  for await (const finding of examine(config, paths)) {
    all.push(finding);
    if (!json) process.stdout.write(`${MARKS[finding.state]} ${finding.name.padEnd(15)} ${withAdvice(finding)}\n`);
  }
  if (json) process.stdout.write(`${JSON.stringify(all.map(toReport), null, 2)}\n`);
  return all.some(({ state }) => state === 'broken') ? 1 : 0;
}

/** Yields findings one by one, because a call can take a while. */
async function* examine(config: Config, paths: Paths): AsyncGenerator<Finding> {
  yield* examineMachine(config, paths);
  yield* tryCalls(config, paths);
  yield look('servers', () => serversDetail(paths.runtime));
}

/** Runs a call in each language, with the settings of a service that is started here. */
async function* tryCalls(config: Config, paths: Paths): AsyncGenerator<Finding> {
  try {
    const base = await findPython(config.python);
    const made = await findEnvironment(paths.cache, base);
    const state = made ?? { phase: 'failed' as const, base, problem: 'it has not been made yet' };
    for await (const { language, ...found } of tryLanguages({ config, paths, state }))
      yield { name: `run ${language}`, advice: null, ...found };
  } catch (error) {
    yield { name: 'calls', state: 'broken', detail: messageOf(error), advice: null };
  }
}

function withAdvice({ detail, advice }: Finding): string {
  return advice === null ? detail : `${detail} ${advice}`;
}

/** As programs have read it from the beginning. */
function toReport({ advice, ...finding }: Finding) {
  return { ...finding, detail: withAdvice({ ...finding, advice }) };
}

const MARKS = { works: '✓', missing: '–', broken: '✗' };

function serversDetail(runtime: string): string {
  const records = readRecords(runtime);
  if (records.length === 0) return absent('none running', null);
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

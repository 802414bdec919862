/** `cuvette serve`: a service for the shells of one person, in the foreground; `cuvette run` starts it in the background. */

import { setTimeout as sleep } from 'node:timers/promises';
import { createLog } from '../log.ts';
import { findPaths } from '../paths.ts';
import { createSessions, type Sessions } from '../sessions/sessions.ts';
import { type Bridge, openBridge } from '../surfaces/bridge/listen.ts';
import { environmentSentence } from '../tools/scope.ts';
import { VERSION } from '../version.ts';
import { parseServerFlags } from './flags.ts';
import { shellCommand } from './shell-command.ts';

export async function main(args: string[]): Promise<number | undefined> {
  const { config, project } = parseServerFlags(args);
  const log = createLog(config.logLevel);
  const paths = findPaths();
  const sessions = createSessions({ config, paths, project });
  const stopped = stopSignal();
  const bridge = await openBridge({ sessions, runtime: paths.runtime, kind: 'service', log });
  const isBackground = config.idle > 0;
  const warm = sessions.warmUp();
  if (isBackground) warm.catch((error: unknown) => log.warn({ err: error }, 'start'));
  else await welcome(sessions, bridge, warm);

  await (isBackground ? Promise.race([stopped, idle(sessions, bridge, config.idle * 1000)]) : stopped);
  bridge.close();
  await Promise.all(sessions.all().map((session) => session.stop()));
  await sessions.close();
  process.exit(0);
}

async function welcome(sessions: Sessions, bridge: Bridge, warm: Promise<void>): Promise<void> {
  const command = shellCommand();
  const say = (line: string) => process.stdout.write(`${line}\n`);
  say(`Cuvette ${VERSION} · ${bridge.socket} · sandbox: none (code runs as you)`);
  try {
    await warm;
  } catch (error) {
    say(`No interpreter yet: ${error instanceof Error ? error.message : error}`);
  }
  say(`Python: ${await environmentSentence(sessions.environment)}`);
  say('');
  say('Try it, in another terminal, in this folder:');
  say(`  ${command} run <<'PY'`);
  say('  import pandas as pd');
  say('  df = pd.DataFrame({"a": [1, 2]}); df');
  say('  PY');
  say('Then give it to your agent:');
  say(`  claude mcp add cuvette -- ${command} mcp`);
  say('');
  say('Ctrl-C stops it.');
  let last = '';
  sessions.environment.onProgress((state) => {
    const line =
      state.phase === 'making'
        ? `Environment: ${state.progress}`
        : state.phase === 'ready'
          ? 'Environment: ready'
          : `Environment: ${state.problem}`;
    if (line !== last) say(line);
    last = line;
  });
}

async function idle(sessions: Sessions, bridge: Bridge, limit: number): Promise<void> {
  const isBusy = () => sessions.all().some((session) => session.pending().length > 0);
  while (isBusy() || Date.now() - bridge.idleSince() < limit) await sleep(Math.min(limit, 5000));
}

function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => resolve());
  });
}

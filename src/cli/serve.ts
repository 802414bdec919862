/** `cuvette serve`: a service for the shells of one person, in the foreground; `cuvette run` starts it in the background. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { EnvironmentState } from '../interpreters/python/environment.ts';
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
  // Not indented: it is there to be copied, and a heredoc ends only at the margin.
  say(`
Try it, in another terminal, in this folder:

${command} run <<'PY'
import pandas as pd
df = pd.DataFrame({"a": [1, 2]}); df
PY

Then give it to your agent:

claude mcp add cuvette -- ${command} mcp

Ctrl-C stops it.`);
  sessions.environment.onProgress(showProgress);
}

/** On a terminal, one line that changes; elsewhere, a line for each step, but not for each package. */
function showProgress(state: EnvironmentState): void {
  const isTerminal = process.stdout.isTTY;
  if (state.phase === 'making') {
    if (isTerminal) process.stdout.write(`\r\x1b[KEnvironment: ${state.progress}`);
    else if (!/^(Collecting|Downloading)/.test(state.progress))
      process.stdout.write(`Environment: ${state.progress}\n`);
    return;
  }
  const end = state.phase === 'ready' ? 'ready' : state.problem;
  process.stdout.write(`${isTerminal ? '\r\x1b[K' : ''}Environment: ${end}\n`);
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

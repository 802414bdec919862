/** `cuvette serve` runs the HTTP service and serves the shells of its folder; `cuvette run` starts it in the background, for shells alone. */

import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../errors.ts';
import type { EnvironmentState } from '../interpreters/python/environment.ts';
import { createLabInterpreters } from '../lab/labs/lab-interpreters.ts';
import { createLabs } from '../lab/labs/labs.ts';
import { createLog } from '../log.ts';
import { findPaths } from '../paths.ts';
import { createAdmission } from '../sessions/admission.ts';
import { withoutSecrets } from '../sessions/environment-variables.ts';
import { createServerResources } from '../sessions/server-resources.ts';
import { createSessions, type Sessions } from '../sessions/sessions.ts';
import { type Bridge, openBridge } from '../surfaces/bridge/listen.ts';
import { createMetrics } from '../surfaces/rest/metrics.ts';
import { projectFiles } from '../tools/caller-files.ts';
import { createLabTools } from '../tools/lab.ts';
import { VERSION } from '../version.ts';
import { type HttpService, openHttpService } from './http-service.ts';
import { openBrowser } from './open-browser.ts';
import { takePageToken } from './page-token.ts';
import { printConfig } from './print-config.ts';
import { parseServerFlags, type ServerFlags } from './server-flags.ts';
import { pageAddress, serviceBanner } from './service-banner.ts';
import { shellCommand, stopSignal } from './this-program.ts';

export async function main(args: string[]): Promise<number | undefined> {
  const flags = parseServerFlags(args, 'serve');
  if (flags.printConfig) {
    process.stdout.write(printConfig(flags.explain(), flags.json));
    return 0;
  }
  const { config, project, mistyped } = flags;
  const log = createLog(config.logLevel);
  if (mistyped.length > 0) log.warn(`The environment has what is no setting: ${mistyped.join(', ')}`);
  const paths = findPaths();
  const pageToken = takePageToken();
  // Code of others may read the environment of what is started for it.
  const resources = createServerResources({ config, paths, env: withoutSecrets() });
  const labs = createLabs({ ...paths, project, store: config.store });
  const labInterpreters = createLabInterpreters(labs);
  const metrics = createMetrics();
  const admission = createAdmission({ ...config, onEnded: metrics.execution, onRefused: metrics.refused });
  const sessions = createSessions({ config, paths, project, resources, admission, labInterpreters });
  const stopped = stopSignal();
  // A server in the background was started by a shell, and serves shells alone.
  const isBackground = config.idle > 0;
  const isPortChosen = flags.explain().some(({ setting, source }) => setting === 'port' && source !== 'default');
  const http = isBackground
    ? undefined
    : await openHttpService({
        ...{ config, isPortChosen, resources, admission, metrics, project, pageToken, log },
        settings: flags.explain(),
      }).catch((error: unknown) => {
        resources.close(); // The environment being made in the background would keep the process alive.
        throw error;
      });
  const labTools = createLabTools({ labsOf: () => labs, files: projectFiles(project) });
  const bridge = await openBridge({
    sessions,
    runtime: paths.runtime,
    data: paths.data,
    kind: 'service',
    log,
    labTools,
    agents: http?.agents,
  });
  if (http) await welcome(sessions, http, flags);
  else sessions.warmUp().catch((error: unknown) => log.warn({ err: error }, 'start'));

  const signal = await (isBackground ? Promise.race([stopped, idle(sessions, bridge, config.idle * 1000)]) : stopped);
  bridge.close();
  // SIGTERM is a restart, after which sessions are found again; Ctrl-C ends them.
  await http?.close(signal === 'SIGTERM');
  await Promise.all(sessions.all().map((session) => session.stop()));
  await sessions.close();
  await labs.close();
  resources.close();
  process.exit(0);
}

async function welcome(sessions: Sessions, http: HttpService, { config, explain, open }: ServerFlags): Promise<void> {
  const say = (line: string) => process.stdout.write(`${line}\n`);
  const problem = await http.warm.then(
    () => undefined,
    (error: unknown) => messageOf(error),
  );
  const python = problem ? `no Python yet: ${problem}` : shortly(await sessions.environment.state());
  say(`Cuvette ${VERSION} · ${http.url} · sandbox: ${http.sandbox} · ${python} · ${await http.languages()}`);
  say(`Access: ${http.access}`);
  const { url, pageToken } = http;
  say(serviceBanner({ url, pageToken, config, settings: explain(), command: shellCommand() }));
  if (open) openBrowser(pageAddress({ url, pageToken }));
  sessions.environment.onProgress(showProgress);
}

function shortly(state: EnvironmentState): string {
  const { version } = state.phase === 'ready' ? state.python : state.base;
  const name = `Python ${version.split('.').slice(0, 2).join('.')}`;
  if (state.phase === 'ready') return `${name} (IPython, numpy, pandas, matplotlib)`;
  if (state.phase === 'making') return `${name} (plain; IPython, numpy, pandas and matplotlib are being installed)`;
  return `${name} (plain: ${state.problem})`;
}

/** Shows progress in one changing line on a terminal, and elsewhere in a line for each step but not for each package. */
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

async function idle(sessions: Sessions, bridge: Bridge, limit: number): Promise<string> {
  const isBusy = () => sessions.all().some((session) => session.pending().length > 0);
  while (isBusy() || Date.now() - bridge.idleSince() < limit) await sleep(Math.min(limit, 5000));
  return 'idle';
}

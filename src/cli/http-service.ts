/** The HTTP service of `cuvette serve`: put together, listening, and taken apart again. */

import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createAdaptorServer } from '@hono/node-server';
import type { Config } from '../config.ts';
import { openFileStore } from '../files/store.ts';
import { LANGUAGES } from '../interpreters/process/languages.ts';
import { zygoteSpec } from '../interpreters/python/environment.ts';
import { probePlace } from '../interpreters/python/place.ts';
import type { Logger } from '../log.ts';
import { isLoopback } from '../loopback.ts';
import type { Foundation } from '../sessions/foundation.ts';
import { createSharedSessions } from '../sessions/shared-sessions.ts';
import { createMcpHttp } from '../surfaces/mcp/http.ts';
import { createAccess, isOpenToPages, OPEN_TO_PAGES } from '../surfaces/rest/access.ts';
import { createApp } from '../surfaces/rest/app.ts';
import { createVersions } from '../surfaces/rest/versions.ts';
import { openConfinement } from './confinement.ts';
import { listen } from './listen.ts';

export interface HttpService {
  readonly url: string;
  readonly sandbox: string;
  /** Done when the first call need not wait for anything to start. */
  readonly warm: Promise<void>;
  /** Who may come in. */
  readonly access: string;
  /** The languages that can be run, for people. */
  languages(): Promise<string>;
  /** True once nothing runs. */
  isIdle(): boolean;
  /** Ends; interpreters wait for the next server if `isLeaving`, and end otherwise. */
  close(isLeaving: boolean): Promise<void>;
}

const SWEEP_EVERY = 30_000;
/** Longer than any client keeps a connection without use: the client closes it first, and loses no request. */
const KEEP_ALIVE = 75_000;
const LAST_ANSWERS = 5000;

export async function openHttpService(options: {
  config: Config;
  /** Whether the port was chosen by the user; if not, another one will do. */
  isPortChosen: boolean;
  foundation: Foundation;
  log: Logger;
}): Promise<HttpService> {
  const { config, foundation, log } = options;
  const access = createAccess(config);
  access.check(config.host);
  if (isOpenToPages(config)) log.warn(`Unsafe: ${OPEN_TO_PAGES}`);
  const python = await foundation.environment.state().then(
    (state) => zygoteSpec(state).python,
    () => undefined,
  );
  const folders = {
    files: config.uploadsDir ?? join(foundation.paths.data, 'files'),
    workspaces: config.notebooksDir ?? join(foundation.paths.data, 'sessions'),
  };
  const confinement = await openConfinement({
    config,
    foundation,
    python,
    sessions: folders.workspaces,
    isOpen: !isLoopback(config.host),
  });
  const { sandbox } = confinement;
  const place = !sandbox && python ? await probePlace(python) : { isPossible: false, problem: 'there is no Python' };
  const description =
    sandbox || place.isPossible
      ? confinement.description
      : `${confinement.description}; code sees /mnt/data elsewhere (${place.problem})`;
  const files = openFileStore({ folder: folders.files });
  const shared = createSharedSessions({
    foundation,
    place: place.isPossible,
    sandbox,
    sandboxDescription: description,
    folder: folders.workspaces,
    most: config.maxSessions,
    idle: config.sessionIdle,
    age: config.sessionAge,
    keep: config.keepFiles,
    ownerOf: (id) => files.ownerOf(id),
    onRemoved: (id) => files.removeSession(id),
  });
  const mcp = createMcpHttp({ sessionsFor: (principal) => shared.of(principal.id), log });
  const app = createApp({ config, access, foundation, shared, files, mcp, log, sandbox: description, folders });
  const server = createAdaptorServer({ fetch: app.fetch }) as Server;
  server.keepAliveTimeout = KEEP_ALIVE;
  server.requestTimeout = 0; // A large upload over a slow line takes its time; headers do not.
  await listen(server, config, options.isPortChosen).catch((error: unknown) => {
    files.close();
    throw error;
  });
  const ending = new AbortController();
  const warm = shared.warmUp();
  warm
    .then(() => prepareLanguages(foundation.programs.cache, ending.signal))
    .catch((error: unknown) => log.warn({ err: error }, 'start'));
  const sweeper = setInterval(() => {
    shared.sweep().catch((error: unknown) => log.warn({ err: error }, 'sweep'));
    files.expire(Date.now() - config.keepFiles * 1000);
  }, SWEEP_EVERY);
  sweeper.unref();
  const { port } = server.address() as AddressInfo;
  const host = config.host.includes(':') ? `[${config.host}]` : config.host;

  return {
    url: `http://${host}:${port}`,
    sandbox: description,
    warm,
    access: access.describe(),
    async languages() {
      const runtimes = await createVersions(foundation.environment).all();
      const others = runtimes.filter(({ lang, version }) => lang !== 'py' && version !== null);
      return others.map(({ lang }) => (lang === 'cpp' ? 'c++' : lang === 'js' ? 'node' : lang)).join(' · ');
    },
    isIdle: () => shared.size === 0,
    async close(isLeaving) {
      clearInterval(sweeper);
      ending.abort();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeIdleConnections();
      await mcp.close();
      const patience = setTimeout(() => server.closeAllConnections(), LAST_ANSWERS);
      await closed;
      clearTimeout(patience);
      await shared.close(isLeaving);
      files.close();
      await confinement.close();
    },
  };
}

/** What makes first builds fast, one after the other, while the service already answers. */
async function prepareLanguages(cache: string, signal: AbortSignal): Promise<void> {
  for (const language of LANGUAGES) {
    if (signal.aborted || 'missing' in (await language.probe())) continue;
    await language.prepare?.(cache, signal).catch(() => {}); // Builds work without it.
  }
}

/** Opens and closes the HTTP service of `cuvette serve`: builds its parts, listens, and sweeps what has expired. */

import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { delimiter, join } from 'node:path';
import { createAdaptorServer } from '@hono/node-server';
import type { Config, SettingRow } from '../config.ts';
import { CuvetteError } from '../errors.ts';
import { openFileStore } from '../files/file-store.ts';
import { openSpills } from '../files/spill.ts';
import { LANGUAGES } from '../interpreters/process/languages.ts';
import type { Logger } from '../log.ts';
import { policyOf } from '../sandbox/policy.ts';
import type { Admission } from '../sessions/admission.ts';
import type { ServerResources } from '../sessions/server-resources.ts';
import { createServiceCalls } from '../sessions/service-calls.ts';
import type { Sessions } from '../sessions/sessions.ts';
import { createWorkspaceFiles } from '../sessions/workspace-files.ts';
import { limitIdleConnections } from '../surfaces/idle-connections.ts';
import { createMcpHttp } from '../surfaces/mcp/http.ts';
import { createAccess, isOpenToPages, OPEN, OPEN_TO_PAGES } from '../surfaces/rest/access.ts';
import { createApp } from '../surfaces/rest/app.ts';
import type { Metrics } from '../surfaces/rest/metrics.ts';
import { createRuntimes } from '../surfaces/rest/runtimes.ts';
import type { SignIns } from '../surfaces/rest/sign-ins.ts';
import { createStreamLogs } from '../surfaces/rest/stream-logs.ts';
import { pageRoutes } from '../surfaces/workbench/page.ts';
import { createWorkbench } from '../surfaces/workbench/workbench.ts';
import { TOOLS } from '../tools/registry.ts';
import { examineMachine } from './findings.ts';
import { openHttpLab } from './http-lab.ts';
import { listen } from './listen.ts';
import { openSignIns } from './page-token.ts';
import { openServiceSessions, serviceFolders } from './service-sessions.ts';
import { shellCommand } from './this-program.ts';

export interface HttpService {
  readonly url: string;
  readonly sandbox: string;
  /** Resolves when the first call need not wait for anything to start. */
  readonly warm: Promise<void>;
  /** Describes who may call. */
  readonly access: string;
  /** Opens the workbench page, where callers need no credential. */
  readonly pageToken: string | undefined;
  /** The sessions of agents over HTTP, where all callers are one principal. */
  readonly agents: { url: string; sessions: Sessions; isUsed(): boolean } | undefined;
  /** Lists the languages that can be run, for people. */
  languages(): Promise<string>;
  /** True once nothing runs. */
  isIdle(): boolean;
  /** Stops the service; interpreters wait for the next server if `isLeaving`, and end otherwise. */
  close(isLeaving: boolean): Promise<void>;
}

const SWEEP_EVERY = 30_000;
/** Longer than clients keep idle connections: the client closes first, and loses no request. */
const KEEP_ALIVE = 75_000;
const LAST_ANSWERS = 5000;

export async function openHttpService(options: {
  config: Config;
  /** Whether the port was chosen by the user; if not, another one will do. */
  isPortChosen: boolean;
  resources: ServerResources;
  /** Through which every execution of this server starts. */
  admission: Admission;
  metrics: Metrics;
  project: string;
  /** The token of the workbench page, if the operator has chosen one. */
  pageToken: string | undefined;
  log: Logger;
  /** Without secrets. */
  settings: SettingRow[];
}): Promise<HttpService> {
  const { config, resources, admission, metrics, log } = options;
  let signIns: SignIns | undefined;
  const access = createAccess(config, () => signIns);
  access.check(config.host);
  if (isOpenToPages(config)) log.warn(`Unsafe: ${OPEN_TO_PAGES}`);
  const folders = serviceFolders(config, resources.paths.data);
  const spills = await openSpills(join(resources.paths.data, 'spill'));
  const logs = createStreamLogs(spills);
  const files = openFileStore({ folder: folders.files });
  // A service that any web page may use is not open to this machine's programs alone.
  const isOpen = access.isOpen && !isOpenToPages(config);
  const lab = openHttpLab({ config, paths: resources.paths, project: options.project, isOpen });
  const opening = openServiceSessions({
    config,
    resources,
    labInterpretersOf: lab?.interpretersOf,
    ownerOf: files.ownerOf,
    onRemoved(id) {
      files.removeSession(id);
      logs.removeSession(id);
    },
  });
  const sessions = await opening.catch((error: unknown) => {
    files.close();
    throw error;
  });
  const { shared, description } = sessions;
  const calls = createServiceCalls({
    sharedSessions: shared,
    workspaceFiles: createWorkspaceFiles({ files, largestOutput: config.maxUpload, quota: config.sessionQuota }),
    spills,
    admission,
    about: { environment: resources.environment, sandbox: description, startedAt: Date.now() },
  });
  const mcp = createMcpHttp({
    sessionsFor: (principal) => calls.sessionsOf(principal.id),
    log,
    lab: lab && { tools: lab.tools, listingOf: (principal) => lab.listingOf(principal.id) },
    // A caller without a key is on this machine, and so is its shell.
    server: { structured: config.structured, shellCommand: access.isOpen ? shellCommand() : undefined },
  });
  const sandboxed = {
    sandbox: description,
    searchPath: sessions.searchPath?.split(delimiter),
    folders: { files: folders.root, workspaces: config.notebooksDir ?? folders.workspaces },
  };
  const workbench = createWorkbench({
    sessionsOf: (c) => calls.sessionsOf(c.get('principal').id),
    ownerOf: (c) => c.get('principal').id,
    toolsOf: () => [...TOOLS, ...(lab?.tools ?? [])],
    log,
    spills,
    uploads: { largest: config.maxUpload, quota: config.sessionQuota },
    maxBody: config.maxBody,
    silence: config.keepAlive * 1000,
  });
  const page = pageRoutes({
    signIns: () => signedIn(signIns),
    tokenPrincipal: access.isOpen ? OPEN : undefined,
  });
  const surfaces = { mcp, workbench: workbench.routes, page };
  const app = createApp({
    config,
    access,
    resources,
    shared,
    calls,
    metrics,
    files,
    logs,
    log,
    ...surfaces,
    operate: {
      sandbox: { description, policy: policyOf(config) },
      settings: options.settings,
      examine: () => examineMachine(config, resources.paths),
    },
    ...sandboxed,
  });
  const server = createAdaptorServer({ fetch: app.fetch }) as Server;
  server.keepAliveTimeout = KEEP_ALIVE;
  limitIdleConnections(server);
  server.requestTimeout = 0; // A large upload over a slow line takes its time; headers do not.
  await listen(server, config, options.isPortChosen).catch((error: unknown) => {
    files.close();
    throw error;
  });
  const { port } = server.address() as AddressInfo;
  signIns = openSignIns({
    ...{ runtime: resources.runtime, what: 'service', port, wantedPort: config.port },
    token: options.pageToken,
    ways: access.ways(),
  });
  const ending = new AbortController();
  const warm = shared.warmUp();
  warm
    .then(() => prepareLanguages(resources.programs.cache, ending.signal))
    .catch((error: unknown) => log.warn({ err: error }, 'start'));
  const sweeper = setInterval(() => {
    shared.endExpired().catch((error: unknown) => log.warn({ err: error }, 'sweep'));
    files.expire(Date.now() - config.keepFiles * 1000);
  }, SWEEP_EVERY);
  sweeper.unref();
  const host = config.host.includes(':') ? `[${config.host}]` : config.host;
  const url = `http://${host}:${port}`;
  const owner = access.onlyPrincipal;

  return {
    url,
    agents:
      owner === undefined
        ? undefined
        : { url, sessions: calls.sessionsOf(owner), isUsed: () => calls.hasDefault(owner) },
    sandbox: description,
    warm,
    access: access.describe(),
    pageToken: access.isOpen ? signIns.token : undefined,
    async languages() {
      const runtimes = await createRuntimes(resources.environment).all();
      const others = runtimes.filter(({ lang, version }) => lang !== 'py' && version !== null);
      return others.map(({ lang }) => (lang === 'cpp' ? 'c++' : lang === 'js' ? 'node' : lang)).join(' · ');
    },
    isIdle: () => shared.size === 0,
    async close(isLeaving) {
      clearInterval(sweeper);
      ending.abort();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeIdleConnections();
      workbench.close();
      await mcp.close();
      const patience = setTimeout(() => server.closeAllConnections(), LAST_ANSWERS);
      await closed;
      clearTimeout(patience);
      await sessions.close(isLeaving);
      logs.close();
      await lab?.close();
      files.close();
    },
  };
}

/** They are opened once the port is known, before the first request. */
function signedIn(signIns: SignIns | undefined): SignIns {
  if (signIns) return signIns;
  throw new CuvetteError('no_server', 'The service is still starting. Try again.');
}

/** Prepares the first builds of languages, one after the other, while the service already answers. */
async function prepareLanguages(cache: string, signal: AbortSignal): Promise<void> {
  for (const language of LANGUAGES) {
    if (signal.aborted || 'missing' in (await language.probe())) continue;
    await language.prepare?.(cache, signal).catch(() => {}); // Builds work without it.
  }
}

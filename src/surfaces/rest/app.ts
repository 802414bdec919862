/** Builds the HTTP app: the middleware that every request passes, and the routes, under / and under /v1. */

import { OpenAPIHono } from '@hono/zod-openapi';
import { Hono } from 'hono';
import { nanoid } from 'nanoid';
import type { Config } from '../../config.ts';
import type { FileStore } from '../../files/file-store.ts';
import { STREAM_HEADERS } from '../../interpreters/execution-events.ts';
import type { Logger } from '../../log.ts';
import type { ServerResources } from '../../sessions/server-resources.ts';
import type { ServiceCalls } from '../../sessions/service-calls.ts';
import type { SharedSessions } from '../../sessions/shared-sessions.ts';
import type { RestEnv } from '../caller.ts';
import { instanceHeader } from '../instance-header.ts';
import type { McpHttp } from '../mcp/http.ts';
import { type Access, checkHostAndOrigin } from './access.ts';
import { execRoutes } from './exec.ts';
import { streamRoutes } from './exec-stream.ts';
import { fileRoutes } from './file-routes.ts';
import { infoRoutes } from './info.ts';
import type { Metrics } from './metrics.ts';
import { serveDocument } from './openapi.ts';
import { type OperateOptions, operateRoutes } from './operate.ts';
import { notFound, onError, refuseInvalid } from './problem.ts';
import { programmaticRoutes } from './programmatic.ts';
import { guardJson, limitBody } from './request-body.ts';
import { requestLog } from './request-log.ts';
import { createRuntimes } from './runtimes.ts';
import type { StreamLogs } from './stream-logs.ts';

export interface AppOptions {
  config: Config;
  access: Access;
  resources: ServerResources;
  shared: SharedSessions;
  calls: ServiceCalls;
  metrics: Metrics;
  files: FileStore;
  logs: StreamLogs;
  mcp: McpHttp;
  /** Routes that look into sessions and work in them. */
  workbench: OpenAPIHono<RestEnv>;
  /** The page that uses them. */
  page: Hono<RestEnv>;
  log: Logger;
  sandbox: string;
  /** The folders in which code looks for commands, if not those of this process. */
  searchPath: string[] | undefined;
  /** What who runs the service is told of it. */
  operate: Pick<OperateOptions, 'sandbox' | 'settings' | 'examine'>;
  /** The folders of uploads and workspaces, as `/health` tells them. */
  folders: { files: string; workspaces: string };
}

export function createApp(options: AppOptions): OpenAPIHono<RestEnv> {
  const { config, access, resources, shared, calls, metrics, files, logs, mcp, log } = options;
  const { environment } = resources;
  metrics.gauge('cuvette_sessions_live', 'Sessions that are open now.', () => shared.size);
  const runtimes = createRuntimes(environment, options.searchPath);
  const exec = { calls, shared, runtimes, silence: config.keepAlive * 1000, log };

  const app = new OpenAPIHono<RestEnv>({
    defaultHook: refuseInvalid,
    // Clients join a base and a path with too many slashes.
    getPath: (request) =>
      access
        .getPath(request)
        .replace(/\/{2,}/g, '/')
        .replace(/(.)\/$/, '$1'),
  });
  app.onError(onError(log, config.pathSecret));
  app.notFound(notFound);
  if (config.logRequests) app.use(requestLog(log, config));
  app.use(metrics.middleware, checkHostAndOrigin(config), access.middleware, instanceHeader(STREAM_HEADERS.instance));

  const routes = new OpenAPIHono<RestEnv>({ defaultHook: refuseInvalid });
  routes.use('/exec/*', limitBody(config.maxBody), guardJson());
  routes.use('/mcp', limitBody(config.maxBody));
  routes.use('/download/*', async (c, next) => {
    await next();
    if (c.req.method === 'GET' && c.res.ok) metrics.downloaded(Number(c.res.headers.get('content-length') ?? 0));
  });
  routes.route('/', execRoutes(exec));
  routes.route('/', streamRoutes({ ...exec, logs }));
  routes.route('/', programmaticRoutes(exec));
  routes.route(
    '/',
    fileRoutes({
      files: counted(files, metrics),
      sessionFor: (entity, principal) =>
        entity === undefined ? nanoid() : shared.idOf(principal.id, `entity:${entity}`),
      limits: { upload: config.maxUpload, quota: config.sessionQuota },
    }),
  );
  routes.route(
    '/',
    infoRoutes({
      shared,
      environment,
      runtimes,
      sandbox: options.sandbox,
      settings: { maxSessions: config.maxSessions, timeout: config.timeout, ...options.folders },
    }),
  );
  routes.route('/', options.workbench);
  routes.route('/', operateRoutes({ metrics, shared, mostSessions: config.maxSessions, ...options.operate }));
  routes.get('/metrics', metrics.handler);
  routes.all('/mcp', (c) => mcp.fetch(c.req.raw, c.get('principal')));

  app.route('/', options.page);
  app.route('/', routes);
  // Mounted a second time by a plain Hono, so that the document has each route once.
  app.route('/v1', new Hono<RestEnv>().route('/', routes));
  serveDocument(app);
  return app;
}

/** Counts the bytes that are received. */
function counted(files: FileStore, metrics: Metrics): FileStore {
  return {
    ...files,
    async receive(input) {
      const file = await files.receive(input);
      metrics.uploaded(file.size);
      return file;
    },
  };
}

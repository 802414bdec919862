/** Answers what the service says of itself: its name and routes, its health, and the libraries that code can use. */

import { createRoute, OpenAPIHono, z } from '@hono/zod-openapi';
import { CuvetteError } from '../../errors.ts';
import type { Environment } from '../../interpreters/python/environment.ts';
import type { SharedSessions } from '../../sessions/shared-sessions.ts';
import { environmentSentence } from '../../tools/session.ts';
import { VERSION } from '../../version.ts';
import type { RestEnv } from '../caller.ts';
import { NOBODY } from './access.ts';
import { refuseInvalid } from './problem.ts';
import type { Runtimes } from './runtimes.ts';

export interface InfoOptions {
  shared: SharedSessions;
  environment: Environment;
  runtimes: Runtimes;
  settings: { maxSessions: number; timeout: number; files: string; workspaces: string };
  /** A sentence on how code is confined. */
  sandbox: string;
}

const FEATURES = ['sessions', 'files', 'streaming', 'programmatic tool calls', 'mcp', 'openapi', 'metrics'];
const ENDPOINTS = {
  exec: 'POST /exec',
  stream: 'POST /exec/stream',
  programmatic: 'POST /exec/programmatic',
  upload: 'POST /upload',
  upload_batch: 'POST /upload/batch',
  files: 'GET /files/{session_id}',
  download: 'GET /download/{session_id}/{file_id}',
  sessions: 'GET /sessions',
  executions: 'GET /sessions/{session_id}/executions',
  events: 'GET /sessions/{session_id}/events',
  delete_session: 'DELETE /sessions/{session_id}',
  mcp: 'POST /mcp',
  health: 'GET /health',
  libraries: 'GET /libraries',
  metrics: 'GET /metrics',
  openapi: 'GET /openapi.json',
};

const json = (description: string) => ({ description, content: { 'application/json': { schema: z.looseObject({}) } } });

export function infoRoutes(options: InfoOptions): OpenAPIHono<RestEnv> {
  const app = new OpenAPIHono<RestEnv>({ defaultHook: refuseInvalid });
  const root = { name: 'Cuvette', version: VERSION, features: FEATURES, endpoints: ENDPOINTS };

  app.openapi(
    createRoute({
      method: 'get',
      path: '/',
      operationId: 'getInfo',
      summary: 'What this is',
      responses: { 200: json('Its name, and the ways in.') },
    }),
    (c) => c.json(root, 200),
  );

  app.openapi(
    createRoute({
      method: 'get',
      path: '/health',
      operationId: 'getHealth',
      summary: 'How it is',
      responses: { 200: json('Its state.') },
    }),
    async (c) => {
      if (c.get('principal') === NOBODY) return c.json({ status: 'healthy' }, 200);
      const { shared, settings, runtimes, sandbox } = options;
      const capabilities = (await runtimes.all()).map(({ lang, title, version, missing, install }) => [
        lang,
        { available: missing.length === 0, missing, title, version, install },
      ]);
      const body = {
        status: 'healthy',
        version: VERSION,
        sandbox,
        active_sessions: shared.size,
        cleaned_sessions: shared.evicted,
        max_sessions: settings.maxSessions,
        execution_timeout: settings.timeout,
        uploads_dir: settings.files,
        notebooks_dir: settings.workspaces,
        environment: await environmentSentence(options.environment),
        runtime_capabilities: Object.fromEntries(capabilities),
        runtime_libraries: { py: Object.keys(await runtimes.libraries('py')) },
      };
      return c.json(body, 200);
    },
  );

  app.openapi(
    createRoute({
      method: 'get',
      path: '/libraries',
      operationId: 'listLibraries',
      summary: 'Which libraries there are',
      request: { query: z.object({ runtime: z.string().optional() }) },
      responses: {
        200: json('By language: what programs can use, with versions.'),
        404: { description: 'There is no such runtime.' },
      },
    }),
    async (c) => {
      const { runtime } = c.req.valid('query');
      const all = await options.runtimes.all();
      const wanted = all.filter(({ aliases }) => !runtime || aliases.includes(runtime.toLowerCase()));
      if (wanted.length === 0)
        throw new CuvetteError(
          'unknown_runtime',
          `There is no runtime ${runtime}. There are: ${all.map(({ lang }) => lang).join(', ')}.`,
        );
      const libraries = wanted.map(async ({ lang }) => [lang, await options.runtimes.libraries(lang)] as const);
      return c.json({ runtime_libraries: Object.fromEntries(await Promise.all(libraries)) }, 200);
    },
  );
  return app;
}

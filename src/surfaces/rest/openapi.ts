/** Serves the OpenAPI document of the routes, with the address under which the caller reached the service. */

import type { OpenAPIHono } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { VERSION } from '../../version.ts';
import type { RestEnv } from '../caller.ts';

const SCHEMES = {
  key: { type: 'apiKey', in: 'header', name: 'x-api-key' },
  token: { type: 'http', scheme: 'bearer', description: 'The key, or a token that LibreChat signed.' },
} as const;

const FILE = '/openapi.json';

const DOCUMENT = {
  openapi: '3.1.0',
  info: {
    title: 'Cuvette',
    version: VERSION,
    description:
      'Live code sessions: run code, keep files, on compute that you own. All paths are also there under /v1.',
  },
  // The settings decide which of these is required, if any.
  security: [{}, { key: [] }, { token: [] }],
};

/** Must be called after all routes were added. */
export function serveDocument(app: OpenAPIHono<RestEnv>): void {
  for (const [name, scheme] of Object.entries(SCHEMES))
    app.openAPIRegistry.registerComponent('securitySchemes', name, scheme);
  const answer = (c: Context<RestEnv>) =>
    c.json(app.getOpenAPI31Document({ ...DOCUMENT, servers: [{ url: addressOf(c) }] }));
  app.get(FILE, answer);
  app.get(`/v1${FILE}`, answer);
}

/** Respects the headers of a proxy in front, and keeps the secret in the path, if the caller used it. */
function addressOf({ req }: Context): string {
  const url = new URL(req.url);
  const host = /^[\w.:[\]-]+$/.exec(req.header('x-forwarded-host') ?? '')?.[0] ?? url.host;
  const scheme = /^https?$/.exec(req.header('x-forwarded-proto') ?? '')?.[0] ?? url.protocol.slice(0, -1);
  return `${scheme}://${host}${url.pathname.replace(/\/openapi\.json\/*$/, '')}`;
}

/** The OpenAPI document: what it says beside the routes, and the address under which whoever asks for it reached the service. */

import type { OpenAPIHono } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { VERSION } from '../../version.ts';
import type { RestEnv } from './caller.ts';

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
  // Which of them counts, if any, is a setting.
  security: [{}, { key: [] }, { token: [] }],
};

/** To be called once all routes are there. */
export function serveDocument(app: OpenAPIHono<RestEnv>): void {
  for (const [name, scheme] of Object.entries(SCHEMES))
    app.openAPIRegistry.registerComponent('securitySchemes', name, scheme);
  const answer = (c: Context<RestEnv>) =>
    c.json(app.getOpenAPI31Document({ ...DOCUMENT, servers: [{ url: addressOf(c) }] }));
  app.get(FILE, answer);
  app.get(`/v1${FILE}`, answer);
}

/** With what a proxy in front says of it, and with the secret in the path, if the caller came by it. */
function addressOf({ req }: Context): string {
  const url = new URL(req.url);
  const host = /^[\w.:[\]-]+$/.exec(req.header('x-forwarded-host') ?? '')?.[0] ?? url.host;
  const scheme = /^https?$/.exec(req.header('x-forwarded-proto') ?? '')?.[0] ?? url.protocol.slice(0, -1);
  return `${scheme}://${host}${url.pathname.replace(/\/openapi\.json\/*$/, '')}`;
}

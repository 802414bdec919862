/**
 * Serves the workbench page: its HTML to browsers that navigate to the root, its files, and signing in and out. What the page may do is
 * said by a strict policy; what it shows of others' code is shown in frames that may do next to nothing.
 */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Hono, type MiddlewareHandler } from 'hono';
import { CuvetteError } from '../../errors.ts';
import { contentTypeOf } from '../../files/content-type.ts';
import { packageFile } from '../../package-root.ts';
import type { Principal, RestEnv } from '../caller.ts';
import { isSameSecret } from '../rest/access.ts';
import { signInOn, signOutOn } from '../rest/page-cookie.ts';
import type { SignIns } from '../rest/sign-ins.ts';

export interface PageOptions {
  signIns(): SignIns;
  /** Whom the token in the address stands for; nobody, where callers need a credential. */
  tokenPrincipal: Principal | undefined;
  /** The folder of the built page. */
  folder?: string;
}

const PAGE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:; font-src 'self'; " +
  "frame-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'";
/** Of the frame that shows HTML of others' code: scripts in an origin of their own, and no network. */
const FRAME_POLICY =
  "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval' blob:; style-src 'unsafe-inline'; " +
  "img-src data: blob:; font-src data:; media-src data: blob:; worker-src blob:; connect-src 'none'; frame-src 'none'; " +
  "form-action 'none'; base-uri 'none'; webrtc 'block'; frame-ancestors 'self'";
/** One in which scripts run, and one in which they do not. */
const FRAME = /^frame(-scripts)?\.html$/;
const HEADERS = { 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' };
const PAGE_HEADERS = {
  ...HEADERS,
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': PAGE_POLICY,
  'cross-origin-opener-policy': 'same-origin',
  'cache-control': 'no-store',
};
const ASSET = /^[\w-][\w.-]*$/;
/** The bundler puts a hash of the content before the ending. */
const HASHED = /[-.][\w-]{8,}\.\w+$/;

const NOT_BUILT = `<!doctype html>
<title>Cuvette</title>
<h1>The workbench page is not built</h1>
<p>In the folder of Cuvette's sources, run <code>npm run build</code>, and load this page again. The API works without it.</p>
`;

/** Must stand before the route that answers the root with JSON. */
export function pageRoutes(options: PageOptions): Hono<RestEnv> {
  const folder = options.folder ?? packageFile('dist', 'web');
  const app = new Hono<RestEnv>();
  app.get('/', servePage(options, folder));
  app.get('/ui/:name', async (c) => {
    const name = c.req.param('name');
    const content = ASSET.test(name) ? await readFile(join(folder, 'ui', name)).catch(() => undefined) : undefined;
    if (!content) throw new CuvetteError('unknown_file', 'The page has no such file. Load the page again.');
    const policy = FRAME.test(name) ? { 'content-security-policy': FRAME_POLICY } : {};
    const caching = HASHED.test(name) ? 'public, max-age=31536000, immutable' : 'no-cache';
    const headers = { ...HEADERS, ...policy, 'content-type': typeOf(name), 'cache-control': caching };
    return c.body(new Uint8Array(content), 200, headers);
  });
  app.post('/login', (c) => {
    signInOn(c, options.signIns(), c.get('principal'));
    return c.body(null, 204);
  });
  app.post('/logout', (c) => {
    signOutOn(c, options.signIns());
    return c.body(null, 204);
  });
  return app;
}

function servePage({ signIns, tokenPrincipal }: PageOptions, folder: string): MiddlewareHandler<RestEnv> {
  return async (c, next) => {
    if (!isNavigation(c.req.header('accept'), c.req.header('sec-fetch-dest'))) return next();
    const url = new URL(c.req.url);
    const here = url.pathname.replace(/^\/+/, '/'); // Two slashes would be another host.
    const token = url.searchParams.get('token');
    if (token !== null) {
      if (tokenPrincipal && isSameSecret(token, signIns().token)) signInOn(c, signIns(), tokenPrincipal);
      url.searchParams.delete('token'); // Where it was wrong, the page asks for it.
      return c.redirect(`${here}${url.search}`, 303);
    }
    // Its files are relative to it.
    if (!here.endsWith('/')) return c.redirect(`${here}/${url.search}`, 308);
    const page = await readFile(join(folder, 'index.html'), 'utf8').catch(() => undefined);
    return c.body(page ?? NOT_BUILT, 200, PAGE_HEADERS);
  };
}

function isNavigation(accept = '', destination: string | undefined): boolean {
  return /\btext\/html\b/i.test(accept) && (destination === undefined || destination === 'document');
}

function typeOf(name: string): string {
  const type = contentTypeOf(name);
  return /^text\/|javascript|json|svg/.test(type) ? `${type}; charset=utf-8` : type;
}

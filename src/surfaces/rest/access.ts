/**
 * Decides who may call the service: by an API key, a secret in the path or a JWT; without any of these, only programs on this machine. The
 * workbench page is let in by a cookie (`page-cookie.ts`), also where programs need nothing: a browser shows pages of others, too.
 * Rejects requests that another site's web page makes through a user's browser: by DNS rebinding, which the Host header shows, and
 * across origins (CSRF), which the Origin header shows. Allowed origins get CORS headers.
 */

import { createHash, timingSafeEqual } from 'node:crypto';
import type { Context, MiddlewareHandler } from 'hono';
import { cors } from 'hono/cors';
import { getPath } from 'hono/utils/url';
import type { Config } from '../../config.ts';
import { CuvetteError } from '../../errors.ts';
import { isLoopback } from '../../loopback.ts';
import type { Principal, RestEnv } from '../caller.ts';
import { createJwtCheck } from './jwt.ts';
import { isFromBrowser, signedInBy } from './page-cookie.ts';
import type { SignIns } from './sign-ins.ts';

export interface Access {
  /** Whether every program of this machine may call, and nobody else. */
  readonly isOpen: boolean;
  /** The principal of every caller, if there can be only one. */
  readonly onlyPrincipal: string | undefined;
  middleware: MiddlewareHandler<RestEnv>;
  /** Returns the path without the secret, as routes see it; given to Hono's option of the same name. */
  getPath(request: Request): string;
  /** Describes for the operator who may call. */
  describe(): string;
  /** Returns a text that is another whenever something else lets callers in. */
  ways(): string;
  /** Throws if listening on this host would let everybody in. */
  check(host: string): void;
}

/** The principal of a caller without a credential, on the public routes of a protected service. */
export const NOBODY: Principal = { id: 'nobody', kind: 'open' };

/** Everybody on this machine. */
export const OPEN: Principal = { id: 'open', kind: 'open' };
const PUBLIC = ['/', '/health', '/v1', '/v1/', '/v1/health'];

export const KEY: Principal = { id: 'key', kind: 'key' };
const PATH: Principal = { id: 'path', kind: 'path' };

/** What decides who may call. */
const SECRETS = ['apiKey', 'pathSecret', 'jwtPublicKey', 'jwksUrl', 'jwtIssuer', 'jwtAudience', 'jwtKid'] as const;
const HOW_PAGES_ENTER =
  'Programs of this machine may use this service; a browser needs the address with the token that its banner shows, or the token.';

const LOCAL_NAMES = ['localhost', '127.0.0.1', '[::1]'];
const READING = ['GET', 'HEAD', 'OPTIONS'];
const EXPOSED = ['Content-Disposition', 'Content-Length', 'ETag', 'Mcp-Session-Id', 'Retry-After', 'WWW-Authenticate'];
const PREFLIGHT_AGE = 600;

const WAYS = [
  {
    name: 'a key',
    principal: KEY.id,
    how: 'the key in the header x-api-key, or in Authorization: Bearer',
    isSet: ({ apiKey }: Config) => Boolean(apiKey),
  },
  {
    name: "LibreChat's tokens",
    principal: undefined,
    how: 'a signed token that is still valid in the header Authorization: Bearer',
    isSet: ({ jwtPublicKey, jwksUrl }: Config) => Boolean(jwtPublicKey || jwksUrl),
  },
  {
    name: 'a secret in the path',
    principal: PATH.id,
    how: 'the secret in the path, as in /k/SECRET/v1',
    isSet: ({ pathSecret }: Config) => Boolean(pathSecret),
  },
];

/** `signIns`: who has signed in on the workbench page, where there is one. */
export function createAccess(config: Config, signIns: () => SignIns | undefined = () => undefined): Access {
  const checkJwt = createJwtCheck(config);
  const isOpen = !isProtected(config) && isLoopback(config.host);

  async function whoIs(c: Context<RestEnv>): Promise<Principal> {
    if (config.pathSecret && stripPathSecret(getPath(c.req.raw), config.pathSecret) !== undefined) {
      c.set('isPage', c.req.header('sec-fetch-site') === 'same-origin');
      return PATH;
    }
    const key = c.req.header('x-api-key');
    const [, bearer] = /^Bearer +(.+)$/i.exec(c.req.header('authorization') ?? '') ?? [];
    const { apiKey } = config;
    const page = signIns();
    const origin = c.req.header('origin');
    const signedIn = page && signedInBy(c, page, origin !== undefined && isOwn(origin, hostOf(c)));
    if (signedIn) {
      c.set('isPage', true);
      return signedIn;
    }
    if (isOpen) {
      const isPageOfOthers = isFromBrowser(c) && !isAllowed(config, origin);
      if (isPageOfOthers && !(page && bearer && isSameSecret(bearer, page.token)))
        throw new Error('A browser needs a cookie.');
      return OPEN;
    }
    if (apiKey && [key, bearer].some((given) => given && isSameSecret(given, apiKey))) return KEY;
    if (bearer && checkJwt) return checkJwt(bearer);
    throw new Error(key || bearer ? 'The credential is wrong.' : 'There is no credential.');
  }

  return {
    isOpen,
    onlyPrincipal: onlyPrincipal(config, isOpen),
    async middleware(c, next) {
      try {
        c.set('principal', await whoIs(c));
      } catch (error) {
        if (isPublic(c.req.path) && ['GET', 'HEAD'].includes(c.req.method)) c.set('principal', NOBODY);
        else if (error instanceof CuvetteError) throw error;
        else throw new CuvetteError('unauthorized', isOpen ? HOW_PAGES_ENTER : howToEnter(config), { cause: error });
      }
      await next();
    },
    getPath(request) {
      const path = getPath(request);
      return (config.pathSecret && stripPathSecret(path, config.pathSecret)) || path;
    },
    describe() {
      const names = WAYS.filter(({ isSet }) => isSet(config)).map(({ name }) => name);
      if (names.length > 0) return names.join(', or ');
      return `open to every program on this machine${isOpenToPages(config) ? `, and UNSAFE: ${OPEN_TO_PAGES}` : ''}`;
    },
    ways: () => JSON.stringify([isOpen, ...SECRETS.map((name) => config[name] ?? null)]),
    check(host) {
      if (isProtected(config) || isLoopback(host)) return;
      throw new CuvetteError(
        'invalid_input',
        `On ${host}, others than this machine reach the service, and nothing asks who they are: anybody could run code here. ` +
          'Set a key (--api-key, CUVETTE_API_KEY), ' +
          "or the public key of LibreChat's tokens (--jwt-public-key, CUVETTE_JWT_PUBLIC_KEY, or --jwks-url, CUVETTE_JWKS_URL), " +
          'or a secret in the path (--path-secret, CUVETTE_PATH_SECRET). ' +
          'Or listen on this machine alone: --host 127.0.0.1',
      );
    },
  };
}

function onlyPrincipal(config: Config, isOpen: boolean): string | undefined {
  if (isOpen) return OPEN.id;
  const ways = WAYS.filter(({ isSet }) => isSet(config));
  return ways.length === 1 ? ways[0]?.principal : undefined;
}

/** Whether GET and HEAD of this path need no credential. */
export function isPublic(path: string): boolean {
  return PUBLIC.includes(path) || path.startsWith('/ui/');
}

/** Warns an operator who allows all origins without requiring a credential. */
export const OPEN_TO_PAGES =
  'with * in --cors-origins (CUVETTE_CORS_ORIGINS, CORS_ALLOW_ORIGINS) and no key, every web page that is opened in a browser ' +
  'on this machine can run code here and read files. Name the origins, such as https://chat.example.com, or set --api-key.';

export function isOpenToPages(config: Config): boolean {
  return config.corsOrigins.includes('*') && !isProtected(config);
}

/** Whether callers must show a credential. */
function isProtected(config: Config): boolean {
  return WAYS.some(({ isSet }) => isSet(config));
}

function howToEnter(config: Config): string {
  const ways = WAYS.filter(({ isSet }) => isSet(config)).map(({ how }) => how);
  if (ways.length === 0)
    return 'The service is open to others than this machine, but has no key yet: it lets nobody in.';
  return `The request has no credential that counts here. Send ${ways.join('; or ')}.`;
}

/** Compares in constant time. An empty secret equals nothing. */
export function isSameSecret(given: string, secret: string): boolean {
  return timingSafeEqual(sha256(given), sha256(secret)) && secret !== '';
}

/** Returns the path behind /k/SECRET, or nothing if the path does not begin with it. */
function stripPathSecret(path: string, secret: string): string | undefined {
  const [, given, rest] = /^\/+k\/([^/]+)(\/.*)?$/s.exec(path) ?? [];
  if (given === undefined || !isSameSecret(given, secret)) return undefined;
  return rest ?? '/';
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** Runs before access control, because a CORS preflight carries no credential. `others` are names to answer to beside this machine's own. */
export function checkHostAndOrigin(config: Config, others: () => string[] = () => []): MiddlewareHandler<RestEnv> {
  const { corsOrigins } = config;
  const isForAll = corsOrigins.includes('*');
  const allow = cors({
    origin: isForAll ? '*' : corsOrigins,
    allowMethods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
    exposeHeaders: EXPOSED,
    maxAge: PREFLIGHT_AGE,
  });
  // DNS rebinding gains a page nothing where callers must show a credential.
  const hosts =
    isLoopback(config.host) && !isProtected(config)
      ? [...new Set([...LOCAL_NAMES, bracketed(config.host)])]
      : undefined;

  return async (c, next) => {
    const host = hostOf(c);
    const names = hosts && [...hosts, ...others()];
    if (names && !names.includes(nameOf(host))) {
      throw new CuvetteError(
        'forbidden',
        `This service does not answer to the name ${JSON.stringify(host)}, which a web page could have pointed here. ` +
          `Use one of these: ${names.join(', ')}. A proxy in front must send such a Host header.`,
      );
    }
    const origin = c.req.header('origin');
    if (origin === undefined || isOwn(origin, host)) return next();
    if (isAllowed(config, origin)) return allow(c, next);
    if (READING.includes(c.req.method) && isPublic(c.req.path)) return next();
    throw new CuvetteError(
      'forbidden',
      `A web page of ${JSON.stringify(origin)} may not use this service. ` +
        'To let it, add its origin to --cors-origins (CUVETTE_CORS_ORIGINS).',
    );
  };
}

/** Whether pages of that origin may use the service. */
function isAllowed({ corsOrigins }: Config, origin: string | undefined): boolean {
  return origin !== undefined && (corsOrigins.includes('*') || corsOrigins.includes(origin));
}

function hostOf({ req }: Context): string {
  return req.header('host') ?? new URL(req.url).host;
}

/** Returns the name in a Host header without the port, or nothing if it is malformed. */
function nameOf(host: string): string {
  return /^(\[[\da-f:.]+\]|[^:@/\s[\]]+)(:\d+)?$/i.exec(host)?.[1]?.toLowerCase() ?? '';
}

function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host.toLowerCase();
}

/** The scheme does not count, because a proxy in front may speak TLS where the service does not. */
function isOwn(origin: string, host: string): boolean {
  if (!/^https?:\/\//.test(origin) || !URL.canParse(origin)) return false;
  const { protocol, host: from } = new URL(origin);
  const here = `${protocol}//${host}`;
  return URL.canParse(here) && new URL(here).host === from;
}

/** Who may come in: a key, a secret in the path, LibreChat's tokens; without any of these, programs on this machine alone. */

import type { Context, MiddlewareHandler } from 'hono';
import { getPath } from 'hono/utils/url';
import type { Config } from '../../config.ts';
import { CuvetteError } from '../../errors.ts';
import { isLoopback } from '../../loopback.ts';
import type { Principal, RestEnv } from './principal.ts';
import { isSame, stripSecret } from './secrets.ts';
import { createTokenCheck } from './token.ts';

export interface Access {
  middleware: MiddlewareHandler<RestEnv>;
  /** The path that routes see: without the secret. Meant for Hono's option of the same name. */
  getPath(request: Request): string;
  /** For the operator, at the start. */
  describe(): string;
  /** Throws if listening there would let everybody in. */
  check(host: string): void;
}

/** Who comes without a credential to what is open to all, where others have to show one. */
export const NOBODY: Principal = { id: 'nobody', kind: 'open' };

const OPEN: Principal = { id: 'open', kind: 'open' };
const PUBLIC = ['/', '/health', '/v1', '/v1/', '/v1/health'];

const WAYS = [
  {
    name: 'a key',
    how: 'the key in the header x-api-key, or in Authorization: Bearer',
    isSet: ({ apiKey }: Config) => Boolean(apiKey),
  },
  {
    name: "LibreChat's tokens",
    how: 'a signed token that is still valid in the header Authorization: Bearer',
    isSet: ({ jwtPublicKey, jwksUrl }: Config) => Boolean(jwtPublicKey || jwksUrl),
  },
  {
    name: 'a secret in the path',
    how: 'the secret in the path, as in /k/SECRET/v1',
    isSet: ({ pathSecret }: Config) => Boolean(pathSecret),
  },
];

export function createAccess(config: Config): Access {
  const checkToken = createTokenCheck(config);
  const isOpen = !isProtected(config) && isLoopback(config.host);

  async function whoIs(c: Context<RestEnv>): Promise<Principal> {
    if (isOpen) return OPEN;
    if (config.pathSecret && stripSecret(getPath(c.req.raw), config.pathSecret) !== undefined)
      return { id: 'path', kind: 'path' };
    const key = c.req.header('x-api-key');
    const [, bearer] = /^Bearer +(.+)$/i.exec(c.req.header('authorization') ?? '') ?? [];
    const { apiKey } = config;
    if (apiKey && [key, bearer].some((given) => given && isSame(given, apiKey))) return { id: 'key', kind: 'key' };
    if (bearer && checkToken) return checkToken(bearer);
    throw new Error(key || bearer ? 'The credential is wrong.' : 'There is no credential.');
  }

  return {
    async middleware(c, next) {
      try {
        c.set('principal', await whoIs(c));
      } catch (error) {
        if (isPublic(c.req.path) && ['GET', 'HEAD'].includes(c.req.method)) c.set('principal', NOBODY);
        else if (error instanceof CuvetteError) throw error;
        else throw new CuvetteError('unauthorized', howToEnter(config), { cause: error });
      }
      await next();
    },
    getPath(request) {
      const path = getPath(request);
      return (config.pathSecret && stripSecret(path, config.pathSecret)) || path;
    },
    describe() {
      const names = WAYS.filter(({ isSet }) => isSet(config)).map(({ name }) => name);
      return names.join(', or ') || 'open to every program on this machine';
    },
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

/** What is open to all, for GET and HEAD: that the service is there, and how it is. */
export function isPublic(path: string): boolean {
  return PUBLIC.includes(path);
}

/** Whether callers have to show something. */
export function isProtected(config: Config): boolean {
  return WAYS.some(({ isSet }) => isSet(config));
}

function howToEnter(config: Config): string {
  const ways = WAYS.filter(({ isSet }) => isSet(config)).map(({ how }) => how);
  if (ways.length === 0)
    return 'The service is open to others than this machine, but has no key yet: it lets nobody in.';
  return `The request has no credential that counts here. Send ${ways.join('; or ')}.`;
}

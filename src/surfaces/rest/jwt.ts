/** Verifies JWTs, as LibreChat signs them, against a public key or a JSON Web Key Set, and derives the principal from their claims. */

import { createPublicKey, type KeyObject } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createLocalJWKSet, createRemoteJWKSet, errors, type JWTVerifyGetKey, jwtVerify } from 'jose';
import * as z from 'zod';
import { type Config, isPem, isUrl } from '../../config.ts';
import { CuvetteError, messageOf } from '../../errors.ts';
import type { Principal } from '../caller.ts';

const ALGORITHMS = ['EdDSA', 'RS256'];
const CLOCK_SKEW = 30;
const FETCH_TIME = 5000;

/** LibreChat writes this tenant where it has none. */
const NO_TENANT = 'legacy';

const claims = z.object({ sub: z.string().min(1), tenant_id: z.string().optional() });

/** Returns nothing if no key is configured. The check throws for an invalid token. */
export function createJwtCheck(config: Config): ((token: string) => Promise<Principal>) | undefined {
  const sources: JWTVerifyGetKey[] = [];
  if (config.jwtPublicKey) {
    const key = readPublicKey(config.jwtPublicKey);
    sources.push(async () => key);
  }
  if (config.jwksUrl) sources.push(isUrl(config.jwksUrl) ? remoteKeys(config.jwksUrl) : keysOfFile(config.jwksUrl));
  if (sources.length === 0) return undefined;

  const options = {
    algorithms: ALGORITHMS,
    issuer: config.jwtIssuer,
    audience: config.jwtAudience,
    clockTolerance: CLOCK_SKEW,
    requiredClaims: ['sub', 'exp'],
  };
  const check = async (token: string, source: JWTVerifyGetKey) => {
    const { payload, protectedHeader } = await jwtVerify(token, source, options);
    if (config.jwtKid && protectedHeader.kid !== config.jwtKid) throw new Error('The token has another kid.');
    return principalOf(claims.parse(payload));
  };
  return async (token) => {
    let problem: unknown;
    for (const source of sources) {
      try {
        return await check(token, source);
      } catch (error) {
        problem = error;
      }
    }
    throw problem;
  };
}

/** Encodes the tenant, so that none can be written that looks like another tenant's user. */
function principalOf({ sub, tenant_id }: z.infer<typeof claims>): Principal {
  const tenant = tenant_id || NO_TENANT;
  const user = `user:${sub}`;
  return { kind: 'jwt', tenant, id: tenant === NO_TENANT ? user : `tenant:${encodeURIComponent(tenant)}/${user}` };
}

function readPublicKey(value: string): KeyObject {
  const pem = isPem(value) ? value.replaceAll('\\n', '\n') : readText('jwtPublicKey', value);
  if (pem.includes('PRIVATE KEY'))
    wrong('jwtPublicKey', 'it is a private key. Make the public one of it: openssl pkey -pubout');
  const key = (() => {
    try {
      return createPublicKey(pem);
    } catch (error) {
      return wrong('jwtPublicKey', `it is no public key in PEM (${messageOf(error)})`, error);
    }
  })();
  const isStrong = key.asymmetricKeyType === 'rsa' && (key.asymmetricKeyDetails?.modulusLength ?? 0) >= 2048;
  if (key.asymmetricKeyType !== 'ed25519' && !isStrong)
    wrong('jwtPublicKey', 'the key must be of the kind Ed25519, or RSA with 2048 bits at least');
  return key;
}

function keysOfFile(path: string): JWTVerifyGetKey {
  const content = readText('jwksUrl', path);
  try {
    return createLocalJWKSet(JSON.parse(content));
  } catch (error) {
    return wrong('jwksUrl', `${path} is no JSON Web Key Set (${messageOf(error)})`, error);
  }
}

function remoteKeys(url: string): JWTVerifyGetKey {
  if (!URL.canParse(url) || new URL(url).username || new URL(url).password)
    wrong('jwksUrl', 'expected a URL without user and password');
  const keys = createRemoteJWKSet(new URL(url), { timeoutDuration: FETCH_TIME });
  return async (header, token) => {
    try {
      return await keys(header, token);
    } catch (error) {
      if (error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys) throw error;
      throw new CuvetteError(
        'no_server',
        "The keys that tokens are checked with cannot be had just now; the server's log has the details. Try again shortly.",
        { cause: error },
      );
    }
  };
}

function readText(setting: string, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    return wrong(setting, `the file ${path} cannot be read (${messageOf(error)})`, error);
  }
}

function wrong(setting: string, reason: string, cause?: unknown): never {
  throw new CuvetteError('invalid_input', `The setting ${setting} is wrong: ${reason}.`, { cause });
}

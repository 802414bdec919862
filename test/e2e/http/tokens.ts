/** Signs tokens as LibreChat signs them for its users. */

import { generateKeyPair, SignJWT } from 'jose';

const { publicKey, privateKey } = await generateKeyPair('EdDSA', { extractable: true });

export { publicKey };

export interface Claims {
  sub?: string;
  audience?: string;
  issuer?: string;
  /** Seconds from now. */
  expires?: number;
  tenant?: string;
  key?: typeof privateKey;
}

async function token({
  sub = 'user-1',
  audience = 'codeapi',
  issuer = 'librechat',
  expires = 300,
  tenant = 'legacy',
  key = privateKey,
}: Claims): Promise<string> {
  const now = Math.floor(Date.now() / 1000);
  return new SignJWT({ tenant_id: tenant, role: 'USER', principal_source: 'librechat_jwt', jti: crypto.randomUUID() })
    .setProtectedHeader({ alg: 'EdDSA', typ: 'JWT', kid: 'lc-codeapi-2026-05' })
    .setIssuer(issuer)
    .setAudience(audience)
    .setSubject(sub)
    .setIssuedAt(now + Math.min(0, expires - 300))
    .setNotBefore(now + Math.min(0, expires - 300))
    .setExpirationTime(now + expires)
    .sign(key);
}

export const bearer = async (claims: Claims = {}) => ({ authorization: `Bearer ${await token(claims)}` });

/** Secrets in requests: comparing them so that time tells nothing, and keeping them out of sight. */

import { createHash, timingSafeEqual } from 'node:crypto';

/** An empty secret is never right. */
export function isSame(given: string, secret: string): boolean {
  return timingSafeEqual(hash(given), hash(secret)) && secret !== '';
}

/** The path behind /k/SECRET; nothing if the path does not begin so. */
export function stripSecret(path: string, secret: string): string | undefined {
  const [, given, rest] = /^\/+k\/([^/]+)(\/.*)?$/s.exec(path) ?? [];
  if (given === undefined || !isSame(given, secret)) return undefined;
  return rest ?? '/';
}

/** Takes out whatever stands where a secret would, which may be one with a slip in it; and the secret, wherever it stands. */
export function hideSecret(path: string, secret?: string): string {
  const hidden = path.replace(/\/k(\/|%2f)[^/]+/gi, '/k/***');
  return secret ? hidden.replaceAll(secret, '***') : hidden;
}

/** The query with the values of credentials left out. */
export function hideCredentials(query: string): string {
  return query.replace(/([^?&=]*)=([^&]*)/g, (pair, name: string) =>
    /key|token|secret|pass|auth|cred|sig/i.test(decode(name)) ? `${name}=***` : pair,
  );
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function hash(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

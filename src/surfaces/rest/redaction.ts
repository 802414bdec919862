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

const SECRET_NAME = '(?:key|token|secret|passw|pwd|auth|cred|cookie|signature)[\\w-]{0,40}';
const LIKE_SECRETS = [
  /((?:Bearer|Basic)\s+)[^\s"'\\]+/gi,
  // What is assigned to a name that says so: in JSON; in code that stands in a string of JSON; without quotes.
  new RegExp(`(${SECRET_NAME}"\\s*:\\s*")(?:[^"\\\\]|\\\\.)*`, 'gi'),
  new RegExp(`(${SECRET_NAME}(?:\\\\*["'])?\\]?\\s*[:=]\\s*\\\\+")(?:(?!\\\\+").)*`, 'gis'),
  new RegExp(`(${SECRET_NAME}(?:\\\\*["'])?\\]?\\s*[:=]\\s*')[^']*`, 'gi'),
  new RegExp(`(${SECRET_NAME}"?\\]?\\s*[:=]\\s*)[^\\s,;})"'\\\\]+`, 'gi'),
  /()\beyJ[\w-]+\.[\w-]+(?:\.[\w-]*)?/g,
  /()\b(?:sk|pk|rk|gh[a-z]|xox[a-z]|hf|glpat|npm|AKIA)[-_]?[\w-]{16,}/g,
  /(-----BEGIN [^-]*PRIVATE KEY-----)[^-]*/g,
];

/** A text with whatever is, or looks like, a secret left out; `secrets` wherever they stand. */
export function hideInText(text: string, secrets: string[]): string {
  let hidden = text;
  for (const secret of secrets) hidden = hidden.replaceAll(secret, '***');
  for (const pattern of LIKE_SECRETS) hidden = hidden.replace(pattern, '$1***');
  return hidden;
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

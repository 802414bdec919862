/** Redacts secrets from paths, queries and texts before they are logged or shown. */

/** Redacts what stands behind `/k/`, which may be the secret mistyped, and the secret itself wherever it stands. */
export function hidePathSecret(path: string, secret?: string): string {
  const hidden = path.replace(/\/k(\/|%2f)[^/]+/gi, '/k/***');
  return secret ? hidden.replaceAll(secret, '***') : hidden;
}

/** Redacts the values of query parameters whose names suggest a credential. */
export function hideQueryCredentials(query: string): string {
  return query.replace(/([^?&=]*)=([^&]*)/g, (pair, name: string) =>
    /key|token|secret|pass|auth|cred|sig/i.test(decode(name)) ? `${name}=***` : pair,
  );
}

const SECRET_NAME = '(?:key|token|secret|passw|pwd|auth|cred|cookie|signature)[\\w-]{0,40}';
const LIKE_SECRETS = [
  /((?:Bearer|Basic)\s+)[^\s"'\\]+/gi,
  // Values assigned to a name that suggests a secret: in JSON; in code inside a JSON string; without quotes.
  new RegExp(`(${SECRET_NAME}"\\s*:\\s*")(?:[^"\\\\]|\\\\.)*`, 'gi'),
  new RegExp(`(${SECRET_NAME}(?:\\\\*["'])?\\]?\\s*[:=]\\s*\\\\+")(?:(?!\\\\+").)*`, 'gis'),
  new RegExp(`(${SECRET_NAME}(?:\\\\*["'])?\\]?\\s*[:=]\\s*')[^']*`, 'gi'),
  new RegExp(`(${SECRET_NAME}"?\\]?\\s*[:=]\\s*)[^\\s,;})"'\\\\]+`, 'gi'),
  /()\beyJ[\w-]+\.[\w-]+(?:\.[\w-]*)?/g,
  /()\b(?:sk|pk|rk|gh[a-z]|xox[a-z]|hf|glpat|npm|AKIA)[-_]?[\w-]{16,}/g,
  /(-----BEGIN [^-]*PRIVATE KEY-----)[^-]*/g,
];

/** Redacts the given secrets and everything that looks like one. */
export function hideSecretsInText(text: string, secrets: string[]): string {
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

/** The environment variables that code finds: all of the user's own, or, where others' code runs, a few that hold no secret. */

/** By name, or by how the name begins. */
const HARMLESS = /^(PATH|LANG|LANGUAGE|LC_.*|TZ|TERM|SSL_CERT_FILE|SSL_CERT_DIR|PIP_INDEX_URL|GOROOT)$/;
const SECRET = /KEY|SECRET|TOKEN|PASSWORD|CREDENTIAL/i;

/** What npm tells a program that it starts, about itself and that program: nothing for code that runs in it. */
const LAUNCHER = /^npm_/i;

export function ownVariables(env: NodeJS.ProcessEnv = process.env): Record<string, string> {
  const set = Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return Object.fromEntries(set.filter(([name]) => !LAUNCHER.test(name)));
}

/** For code of others, whose home is its workspace. */
export function harmlessVariables(home: string, env: NodeJS.ProcessEnv = process.env): Record<string, string> {
  const kept = Object.entries(ownVariables(env)).filter(([name]) => HARMLESS.test(name));
  return { ...Object.fromEntries(kept), HOME: home };
}

/** For processes of ours that others' code may come to look at. */
export function withoutSecrets(env: NodeJS.ProcessEnv = process.env): Record<string, string> {
  return Object.fromEntries(Object.entries(ownVariables(env)).filter(([name]) => !SECRET.test(name)));
}

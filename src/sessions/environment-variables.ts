/** Chooses the environment variables that code finds: all of the user's own, or, where others' code runs, a few that hold no secret. */

import { SEEN } from '../sandbox/layout.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';

/** Where the driver listens in a session, for the proxy. */
const PROXY_URL = 'http://127.0.0.1:3128';
/** By name, or by how the name begins. */
const HARMLESS =
  /^(PATH|LANG|LANGUAGE|LC_.*|TZ|TERM|SSL_CERT_FILE|SSL_CERT_DIR|REQUESTS_CA_BUNDLE|PIP_CERT|PIP_INDEX_URL|GOROOT)$/;
/** In an address, before its host. */
const CREDENTIALS = /:\/\/[^/]*@/;
const SECRET = /KEY|SECRET|TOKEN|PASSWORD|CREDENTIAL/i;

/** What npm tells a program that it starts, about itself and that program: nothing for code that runs in it. */
const LAUNCHER = /^npm_/i;

export function ownVariables(env: NodeJS.ProcessEnv = process.env): Record<string, string> {
  const set = Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return Object.fromEntries(set.filter(([name]) => !LAUNCHER.test(name)));
}

/** For code of others, whose home is its workspace. */
export function harmlessVariables(home: string, env: NodeJS.ProcessEnv = process.env): Record<string, string> {
  const kept = Object.entries(ownVariables(env)).filter(
    ([name, value]) => HARMLESS.test(name) && !CREDENTIALS.test(value),
  );
  return { ...Object.fromEntries(kept), HOME: home };
}

/** What confined code needs beside: a way out where there is one, and where packages that it installs for itself belong. */
export function confinedVariables({ policy: { network }, searchPath }: Sandbox): Record<string, string> {
  const own = { PATH: searchPath, USER: 'user', TMPDIR: SEEN.temporary };
  if (network === 'none') return own;
  const packages = `${SEEN.home}/packages`;
  const installs = { ...own, PIP_TARGET: packages, PYTHONPATH: packages, PIP_DISABLE_PIP_VERSION_CHECK: '1' };
  if (network === 'allow') return installs;
  const proxies = ['http_proxy', 'https_proxy', 'HTTP_PROXY', 'HTTPS_PROXY'].map((name) => [name, PROXY_URL]);
  return { ...installs, ...Object.fromEntries(proxies), no_proxy: 'localhost,127.0.0.1,::1' };
}

/** For processes of ours that others' code may come to look at. */
export function withoutSecrets(env: NodeJS.ProcessEnv = process.env): Record<string, string> {
  return Object.fromEntries(Object.entries(ownVariables(env)).filter(([name]) => !SECRET.test(name)));
}

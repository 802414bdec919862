/** The commands that `cuvette serve` prints at its start work as they are pasted, whatever lets callers in; and none shows a credential. */

import { spawnSync } from 'node:child_process';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { exportSPKI, generateKeyPair, SignJWT } from 'jose';
import { afterAll, describe, expect, test } from 'vitest';
import { serviceBanner } from '../../../src/cli/service-banner.ts';
import { explainConfig, readConfig } from '../../../src/config.ts';
import { createHome, waitFor } from '../harness.ts';
import { anotherService, endHome } from './service.ts';

const KEY = 'a $key with `spaces` & signs';
const SECRET = 'path-secret-0123456789';
const { publicKey, privateKey } = await generateKeyPair('EdDSA', { extractable: true });
const token = await new SignJWT({ tenant_id: 'legacy', principal_source: 'librechat_jwt', jti: crypto.randomUUID() })
  .setProtectedHeader({ alg: 'EdDSA', typ: 'JWT', kid: 'lc-codeapi-2026-05' })
  .setIssuer('librechat')
  .setAudience('codeapi')
  .setSubject('user-1')
  .setIssuedAt()
  .setNotBefore('0s')
  .setExpirationTime('5m')
  .sign(privateKey);
const jwt = { CODEAPI_JWT_PUBLIC_KEY: await exportSPKI(publicKey) };

const home = createHome({ preload: 'none' });
afterAll(() => endHome(home));

interface Way {
  name: string;
  env?: Record<string, string>;
  args?: string[];
  /** What the operator has, and in which variable the commands look for it. */
  credential?: [variable: string, value: string];
  libreChat: RegExp;
}

const WAYS: Way[] = [
  { name: 'nothing', libreChat: /LIBRECHAT_CODE_BASEURL=http:\/\/127\.0\.0\.1:\d+\/v1\n\n/ },
  {
    name: 'a key in CODE_INTERPRETER_API_KEY',
    env: { CODE_INTERPRETER_API_KEY: KEY },
    credential: ['CODE_INTERPRETER_API_KEY', KEY],
    libreChat: /LIBRECHAT_CODE_BASEURL=http:\/\/127\.0\.0\.1:\d+\/v1\n +and the key in LIBRECHAT_CODE_API_KEY/,
  },
  {
    name: 'a key as a flag',
    args: ['--api-key', KEY],
    credential: ['CUVETTE_API_KEY', KEY],
    libreChat: /LIBRECHAT_CODE_BASEURL=http:\/\/127\.0\.0\.1:\d+\/v1\n +and the key/,
  },
  {
    name: 'a secret in the path',
    env: { CUVETTE_PATH_SECRET: SECRET },
    credential: ['CUVETTE_PATH_SECRET', SECRET],
    libreChat:
      /LIBRECHAT_CODE_BASEURL=http:\/\/127\.0\.0\.1:\d+\/k\/SECRET\/v1\n +with what CUVETTE_PATH_SECRET is for SECRET/,
  },
  {
    name: 'tokens',
    env: jwt,
    credential: ['CUVETTE_TOKEN', token],
    libreChat: /LIBRECHAT_CODE_BASEURL=http:\/\/127\.0\.0\.1:\d+\/v1\n +and CODEAPI_JWT_ENABLED=true/,
  },
  {
    name: 'all of them',
    env: { ...jwt, CUVETTE_PATH_SECRET: SECRET, CUVETTE_API_KEY: KEY },
    credential: ['CUVETTE_API_KEY', KEY],
    libreChat: /CODEAPI_JWT_ENABLED=true/,
  },
];

describe.each(WAYS)('where callers authenticate with $name,', ({ env = {}, args = [], credential, libreChat }) => {
  test('the commands that are printed work in a shell and show no credential', async () => {
    const service = await anotherService({ home, args, env });
    await waitFor('it has said all', () => service.stdout().includes('Ctrl-C stops it.'));
    const said = service.stdout();
    for (const secret of [KEY, SECRET, token]) expect(said).not.toContain(secret);
    expect(said).toMatch(libreChat);

    const [, first = ''] = /another terminal:\n\n([\s\S]*?)\n\nIn this folder/.exec(said) ?? [];
    const [, add = ''] = /by HTTP.*: +(claude .*)/.exec(said) ?? [];
    const variables = credential ? { [credential[0]]: credential[1] } : {};
    expect(JSON.parse(paste(first, variables)).stdout).toBe('hello\n');
    // Without the variable it is asked for.
    if (credential) expect(JSON.parse(paste(first, {}, `${credential[1]}\n`)).stdout).toBe('hello\n');
    expect(await toolsOf(added(add, variables))).toContain('execute');
  });

  function paste(commands: string, variables: Record<string, string>, input = ''): string {
    const shell = { PATH: process.env.PATH ?? '', ...variables };
    const { stdout, stderr } = spawnSync('bash', ['--norc', '-c', commands], { env: shell, input, encoding: 'utf8' });
    expect(stderr).toMatch(input ? /^Paste [^:]+, and press Enter: \n$/ : /^$/);
    return stdout;
  }

  /** What `claude` would be told. */
  function added(command: string, variables: Record<string, string>): string[] {
    const bin = home.project('bin');
    const note = join(bin, 'arguments');
    writeFileSync(join(bin, 'claude'), `#!/bin/sh\nprintf '%s\\n' "$@" > '${note}'\n`);
    chmodSync(join(bin, 'claude'), 0o755);
    paste(`PATH=${bin}:$PATH; ${command}`, variables);
    return readFileSync(note, 'utf8').trim().split('\n');
  }
});

test('on all addresses, the printed commands name this machine, and the lines for LibreChat say what to fill in', () => {
  const config = readConfig({ apiKey: KEY, host: '0.0.0.0' }, {});
  const settings = explainConfig({ apiKey: KEY, host: '0.0.0.0' }, {});
  const said = serviceBanner({ url: 'http://0.0.0.0:8000', config, settings, command: 'cuvette' });
  expect(said).toContain('curl -s http://127.0.0.1:8000/exec -H "x-api-key: $CUVETTE_API_KEY"');
  expect(said).toMatch(/LIBRECHAT_CODE_BASEURL=http:\/\/HOST:8000\/v1\n +with the name of this machine/);
  expect(said).not.toContain('0.0.0.0');
});

/** The names of the tools that an agent gets after `claude mcp add` with these arguments. */
async function toolsOf(given: string[]): Promise<string[]> {
  const [mcp, add, option, transport, name, url = '', header, value = ''] = given;
  expect([mcp, add, option, transport, name]).toEqual(['mcp', 'add', '--transport', 'http', 'cuvette']);
  const [, field = '', credential = ''] = /^([\w-]+): (.*)$/.exec(value) ?? [];
  expect([undefined, '--header']).toContain(header);
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(field && { [field]: credential }),
    },
    body: '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}',
  });
  const text = await response.text();
  expect(response.status, text).toBe(200);
  return [...text.matchAll(/"name":"(\w+)"/g)].map(([, tool = '']) => tool);
}

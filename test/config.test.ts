import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { printConfig } from '../src/cli/print-config.ts';
import { parseServerFlags } from '../src/cli/server-flags.ts';
import { explainConfig, readConfig, readConfigFile } from '../src/config.ts';
import { SETTINGS } from '../src/settings.ts';
import { temporaryFolder } from './temporary-folder.ts';

const SECRET = 'Zq3-xk_9Lm2pQr7T';

function file(values: unknown, folder = temporaryFolder()): string {
  const path = join(folder, 'cuvette.json');
  writeFileSync(path, typeof values === 'string' ? values : JSON.stringify(values));
  return path;
}

describe('settings', () => {
  it('have defaults', () => {
    expect(readConfig({}, {})).toEqual({
      autoInstall: true,
      store: true,
      tools: 'auto',
      structured: false,
      preload: ['numpy', 'pandas', 'matplotlib.pyplot'],
      timeout: 300,
      outputLimit: 25_000,
      maxOutput: 100_000_000,
      linger: 3600,
      idle: 0,
      logLevel: 'warn',
      host: '127.0.0.1',
      port: 8000,
      jwtIssuer: 'librechat',
      jwtAudience: 'codeapi',
      maxSessions: 50,
      sessionIdle: 3600,
      sessionAge: 86_400,
      keepFiles: 172_800,
      bashStrict: false,
      corsOrigins: [],
      logRequests: false,
      keepAlive: 15,
      maxBody: 67_108_864,
      maxUpload: 2_147_483_648,
      sandbox: 'auto',
      network: 'none',
      sessionMemory: 2_147_483_648,
      sessionProcesses: 256,
      sessionCpus: 0,
      sessionOpenFiles: 4096,
      sessionQuota: 10_737_418_240,
      sessionFileCount: 200_000,
      rateLimit: 0,
      maxRunning: 0,
      programMemory: 0,
      programCpu: 0,
    });
  });

  it('come from the environment', () => {
    const env = {
      CUVETTE_PYTHON: '/opt/python',
      CUVETTE_AUTO_INSTALL: 'false',
      CUVETTE_TIMEOUT: '1.5',
      CUVETTE_OUTPUT_LIMIT: '1000',
      CUVETTE_MAX_OUTPUT: '2000',
      CUVETTE_LINGER: '5',
      CUVETTE_IDLE: '6',
      CUVETTE_LOG_LEVEL: 'debug',
    };
    expect(readConfig({}, env)).toMatchObject({
      python: '/opt/python',
      autoInstall: false,
      timeout: 1.5,
      outputLimit: 1000,
      maxOutput: 2000,
      linger: 5,
      idle: 6,
      logLevel: 'debug',
    });
  });

  it('of the service come from the names that its users have in their environment already', () => {
    const env = {
      HOST: '0.0.0.0',
      PORT: '9000',
      CODE_INTERPRETER_API_KEY: 'key',
      CODEAPI_JWT_PUBLIC_KEY: '-----BEGIN PUBLIC KEY-----\\nMC…',
      CODEAPI_JWT_KID: 'lc-1',
      CODEAPI_JWT_JWKS_URL: 'https://chat.example.com/jwks',
      CODEAPI_JWT_ISSUER: 'me',
      CODEAPI_JWT_AUDIENCE: 'you',
      MAX_SESSIONS: '5',
      UPLOADS_DIR: '/srv/uploads',
      NOTEBOOKS_DIR: '/srv/notebooks',
      BASH_STRICT_MODE: 'True',
      CORS_ALLOW_ORIGINS: 'https://Chat.example.com/, http://localhost:3080,https://x.example:443',
      LOG_REQUESTS: '1',
      SUBPROCESS_MAX_MEMORY_MB: '512',
      SUBPROCESS_MAX_CPU_SECONDS: '30',
    };
    expect(readConfig({}, env)).toMatchObject({
      host: '0.0.0.0',
      port: 9000,
      apiKey: 'key',
      jwtPublicKey: '-----BEGIN PUBLIC KEY-----\\nMC…',
      jwtKid: 'lc-1',
      jwksUrl: 'https://chat.example.com/jwks',
      jwtIssuer: 'me',
      jwtAudience: 'you',
      maxSessions: 5,
      uploadsDir: '/srv/uploads',
      notebooksDir: '/srv/notebooks',
      bashStrict: true,
      corsOrigins: ['https://chat.example.com', 'http://localhost:3080', 'https://x.example'],
      logRequests: true,
      programMemory: 512,
      programCpu: 30,
    });
  });

  it('come from flags before the environment, from there before the file, from there before the defaults', () => {
    const path = file({ timeout: 3, linger: 3, idle: 3 });
    const given = readConfigFile(path);
    const env = { CUVETTE_TIMEOUT: '2', CUVETTE_LINGER: '2' };
    expect(readConfig({ timeout: '1' }, env, given)).toMatchObject({ timeout: 1, linger: 2, idle: 3, port: 8000 });
    const rows = explainConfig({ timeout: '1' }, env, given);
    const sources = Object.fromEntries(rows.map(({ setting, source }) => [setting, source]));
    expect(sources).toMatchObject({
      timeout: 'flag',
      linger: 'environment CUVETTE_LINGER',
      idle: `file ${path}`,
      port: 'default',
    });
  });

  it('that are false by a flag come before what the environment turns on', () => {
    expect(readConfig({ autoInstall: false }, { CUVETTE_AUTO_INSTALL: '1' }).autoInstall).toBe(false);
  });

  it('take the first name of a setting that has two', () => {
    expect(readConfig({}, { EXECUTION_TIMEOUT: '9' }).timeout).toBe(9);
    expect(readConfig({}, { EXECUTION_TIMEOUT: '9', CUVETTE_TIMEOUT: '8' }).timeout).toBe(8);
    expect(readConfig({}, { EXECUTION_TIMEOUT: '9', CUVETTE_TIMEOUT: '' }).timeout).toBe(9);
  });

  it('take an empty variable as not set', () => {
    expect(readConfig({}, { CUVETTE_TIMEOUT: '', CUVETTE_AUTO_INSTALL: '' })).toEqual(readConfig({}, {}));
  });

  it('do not take what Kubernetes writes into CUVETTE_PORT for a port', () => {
    expect(readConfig({}, { CUVETTE_PORT: 'tcp://10.0.0.1:8000' }).port).toBe(8000);
    expect(readConfig({}, { CUVETTE_PORT: 'tcp://10.0.0.1:8000', PORT: '9000' }).port).toBe(9000);
  });

  it('take HOST for theirs only if it is an address', () => {
    for (const HOST of ['x86_64-conda-linux-gnu', 'my-box']) expect(readConfig({}, { HOST }).host).toBe('127.0.0.1');
    expect(readConfig({}, { HOST: '[::]' }).host).toBe('::');
    expect(readConfig({}, { CUVETTE_HOST: 'my-box' }).host).toBe('my-box');
  });

  it.each(['0', 'false', 'no', 'off', 'FALSE'])('turn automatic installs off with %s', (value) => {
    expect(readConfig({}, { CUVETTE_AUTO_INSTALL: value }).autoInstall).toBe(false);
  });

  it('allow no limit of time', () => {
    expect(readConfig({ timeout: '0' }, {}).timeout).toBe(0);
  });

  it.each([
    ['5000', 5000],
    ['10MB', 10_000_000],
    ['1.5 kB', 1500],
    ['64MiB', 67_108_864],
    ['2gib', 2_147_483_648],
    ['1TB', 1_000_000_000_000],
    ['4096B', 4096],
  ])('take %s for so many bytes', (value, bytes) => {
    expect(readConfig({ maxBody: value }, {}).maxBody).toBe(bytes);
  });

  it.each([
    ['127.0.0.1', '127.0.0.1'],
    ['[::1]', '::1'],
    ['localhost', 'localhost'],
    ['my-box.lan', 'my-box.lan'],
  ])('take %s for a host', (value, host) => {
    expect(readConfig({ host: value }, {}).host).toBe(host);
  });

  it.each([
    ['timeout', 'CUVETTE_TIMEOUT', 'soon'],
    ['timeout', 'CUVETTE_TIMEOUT', '-1'],
    ['timeout', 'CUVETTE_TIMEOUT', ' '],
    ['outputLimit', 'CUVETTE_OUTPUT_LIMIT', '999'],
    ['outputLimit', 'CUVETTE_OUTPUT_LIMIT', '2000.5'],
    ['maxOutput', 'CUVETTE_MAX_OUTPUT', '10'],
    ['linger', 'CUVETTE_LINGER', '0'],
    ['autoInstall', 'CUVETTE_AUTO_INSTALL', 'maybe'],
    ['logLevel', 'CUVETTE_LOG_LEVEL', 'loud'],
    ['port', 'PORT', '65536'],
    ['host', 'CUVETTE_HOST', 'localhost:8000'],
    ['host', 'CUVETTE_HOST', 'http://localhost'],
    ['apiKey', 'CUVETTE_API_KEY', ' '],
    ['apiKey', 'CUVETTE_API_KEY', 'schlüssel'],
    ['pathSecret', 'CUVETTE_PATH_SECRET', 'short'],
    ['pathSecret', 'CUVETTE_PATH_SECRET', 'long enough, but/with a slash'],
    ['keepFiles', 'CUVETTE_KEEP_FILES', '3600'],
    ['maxSessions', 'MAX_SESSIONS', '0'],
    ['maxBody', 'CUVETTE_MAX_BODY', '10 bananas'],
    ['maxUpload', 'CUVETTE_MAX_UPLOAD', '-1'],
    ['corsOrigins', 'CORS_ALLOW_ORIGINS', 'chat.example.com'],
    ['corsOrigins', 'CORS_ALLOW_ORIGINS', 'https://chat.example.com/path'],
    ['corsOrigins', 'CORS_ALLOW_ORIGINS', 'null'],
    ['preload', 'CUVETTE_PRELOAD', 'numpy;pandas'],
    ['preload', 'CUVETTE_PRELOAD', '--programs'],
  ])('refuse %s from %s=%s', (setting, variable, value) => {
    expect(() => readConfig({}, { [variable]: value })).toThrow(`The setting ${setting} (`);
  });

  it.each([
    ['none', []],
    ['scipy.stats, torch', ['scipy.stats', 'torch']],
  ])('read the modules to load from CUVETTE_PRELOAD=%s', (value, modules) => {
    expect(readConfig({}, { CUVETTE_PRELOAD: value }).preload).toEqual(modules);
  });

  it('name the flag, the variables and the key of what is wrong, and where it came from', () => {
    expect(() => readConfig({ outputLimit: 'many' }, {})).toThrow(
      'The setting outputLimit (--output-limit, CUVETTE_OUTPUT_LIMIT, "outputLimit" in a file) is wrong: expected a number. It came from the flag --output-limit.',
    );
    expect(() => readConfig({}, { EXECUTION_TIMEOUT: 'x' })).toThrow(
      '(--timeout, CUVETTE_TIMEOUT, EXECUTION_TIMEOUT, "timeout" in a file) is wrong: expected a number. It came from the environment EXECUTION_TIMEOUT.',
    );
    const path = file({ autoInstall: 'maybe' });
    expect(() => readConfig({}, {}, readConfigFile(path))).toThrow(
      `(--no-auto-install, CUVETTE_AUTO_INSTALL, "autoInstall" in a file) is wrong: expected true or false. It came from the file ${path}.`,
    );
  });

  it('say all that is wrong at once', () => {
    expect(() => readConfig({}, { PORT: 'x', MAX_SESSIONS: 'y' })).toThrow(/setting port .*\n.*setting maxSessions /);
  });

  it('do not show a secret that is wrong', () => {
    expect(() => readConfig({ pathSecret: 'hunter2' }, {})).not.toThrow(/hunter2/);
  });
});

describe('the file of settings', () => {
  it('has numbers, switches and lists as JSON writes them', () => {
    const values = {
      port: 0,
      bashStrict: true,
      corsOrigins: ['https://a.example', 'tauri://localhost'],
      maxBody: '1MiB',
    };
    expect(readConfig({}, {}, readConfigFile(file(values)))).toMatchObject({ ...values, maxBody: 1_048_576 });
  });

  it('has paths that are meant from its own folder', () => {
    const folder = temporaryFolder();
    const values = {
      uploadsDir: 'files',
      jwtPublicKey: '@keys/public.pem',
      jwksUrl: './jwks.json',
      notebooksDir: '/srv',
    };
    expect(readConfig({}, {}, readConfigFile(file(values, folder)))).toMatchObject({
      uploadsDir: join(folder, 'files'),
      jwtPublicKey: join(folder, 'keys/public.pem'),
      jwksUrl: join(folder, 'jwks.json'),
      notebooksDir: '/srv',
    });
    expect(readConfig({ uploadsDir: 'files' }, {}).uploadsDir).toBe(join(process.cwd(), 'files'));
  });

  it.each([
    [
      { prot: 1, api_key: 'x', port: 1 },
      /cuvette\.json has what is no setting: prot \(did you mean port\?\), api_key \(did you mean apiKey\?\)\. The settings are: python, /,
    ],
    [[1], /cannot be read: it is not an object\. It must be JSON/],
    ['{ port: 1 }', /cannot be read: .*JSON/],
    ['null', /cannot be read/],
  ])('is refused if it is %j', (values, message) => {
    const path = file(values);
    expect(() => readConfigFile(path)).toThrow(message);
  });

  it.each([null, '', [], {}, true])('has no number that is %j', (value) => {
    const given = readConfigFile(file({ timeout: value }));
    expect(() => readConfig({}, {}, given)).toThrow('The setting timeout (');
  });

  it('must be there if it was named, and may be missing in the folder', () => {
    const folder = temporaryFolder();
    expect(() => readConfigFile(join(folder, 'mine.json'), folder)).toThrow(/mine\.json cannot be read: ENOENT/);
    expect(readConfigFile(undefined, folder)).toBeUndefined();
    const path = file({ port: 1 }, folder);
    expect(readConfigFile(undefined, folder)).toEqual({ path, values: { port: 1 } });
  });
});

describe('the flags of a server', () => {
  it('are there for every setting of serve', () => {
    const project = temporaryFolder();
    const args = ['--port', '0', '--path-secret', SECRET, '--log-requests', '--cors-origins=https://a.example'];
    const { config } = parseServerFlags([...args, '--no-auto-install', '--project', project], 'serve', {});
    expect(config).toMatchObject({
      port: 0,
      pathSecret: SECRET,
      logRequests: true,
      corsOrigins: ['https://a.example'],
      autoInstall: false,
    });
  });

  it('can turn a switch off that the environment turns on', () => {
    const project = temporaryFolder();
    const { config } = parseServerFlags(['--no-log-requests', '--project', project], 'serve', { LOG_REQUESTS: '1' });
    expect(config.logRequests).toBe(false);
  });

  it('name a file, which the environment can do too', () => {
    const path = file({ timeout: 7 });
    const project = temporaryFolder();
    for (const command of ['mcp', 'serve'] as const) {
      expect(parseServerFlags(['--config', path, '--project', project], command, {}).config.timeout).toBe(7);
      const found = parseServerFlags(['--project', project], command, { CUVETTE_CONFIG: path });
      expect(found).toMatchObject({ config: { timeout: 7 }, configFile: path });
    }
  });

  it("leave the project's file to a service that a person starts", () => {
    const project = temporaryFolder();
    const path = file({ python: './evil' }, project);
    const inFront = parseServerFlags(['--project', project], 'serve', {});
    expect(inFront).toMatchObject({ config: { python: './evil' }, configFile: path });
    for (const other of [
      parseServerFlags(['--project', project], 'mcp', {}),
      parseServerFlags(['--project', project, '--idle', '1800'], 'serve', {}),
      parseServerFlags(['--project', project], 'serve', { CUVETTE_IDLE: '1800' }),
    ]) {
      expect(other.config.python).toBeUndefined();
      expect(other.configFile).toBeUndefined();
    }
  });

  it("keep an agent's server from what is only the service's", () => {
    const project = temporaryFolder();
    expect(() => parseServerFlags(['--port', '1', '--project', project], 'mcp', {})).toThrow(/Unknown option '--port'/);
    const { config } = parseServerFlags(['--project', project], 'mcp', { PORT: 'COM1', EXECUTION_TIMEOUT: '4' });
    expect(config).toMatchObject({ port: 8000, timeout: 4 });
  });

  it('ask for the settings to be shown', () => {
    const project = temporaryFolder();
    const flags = (...args: string[]) => parseServerFlags([...args, '--project', project], 'serve', {});
    expect(flags()).toMatchObject({ printConfig: false, json: false });
    expect(flags('--print-config', '--json')).toMatchObject({ printConfig: true, json: true });
  });
});

describe('the settings shown', () => {
  const rows = explainConfig(
    { apiKey: 'hunter2', port: '1' },
    { CUVETTE_PATH_SECRET: SECRET, CUVETTE_JWT_PUBLIC_KEY: '-----BEGIN PUBLIC KEY-----\nMC' },
  );

  it('are a table of values, sources and names', () => {
    const lines = printConfig(rows).split('\n');
    expect(lines[0]).toMatch(/^setting +value +from +flag +environment$/);
    expect(lines).toHaveLength(SETTINGS.length + 2);
    expect(lines.find((line) => line.startsWith('port '))).toMatch(/^port +1 +flag +--port +CUVETTE_PORT, PORT$/);
    expect(lines.find((line) => line.startsWith('jwtKid '))).toMatch(
      /^jwtKid +none +default +--jwt-kid +CUVETTE_JWT_KID/,
    );
    expect(lines.find((line) => line.startsWith('autoInstall '))).toMatch(/ true +default +--no-auto-install /);
    const column = lines[0]?.indexOf('from') ?? 0;
    expect(lines.slice(0, -1).every((line) => line[column - 1] === ' ' && line[column] !== ' ')).toBe(true);
  });

  it('say of secrets only that they are set', () => {
    for (const text of [printConfig(rows), printConfig(rows, true)]) {
      expect(text).not.toMatch(new RegExp(`hunter2|${SECRET}|BEGIN`));
    }
    expect(rows.filter(({ value }) => value === '(set)').map(({ setting }) => setting)).toEqual([
      'apiKey',
      'pathSecret',
    ]);
  });

  it('are JSON for programs', () => {
    expect(JSON.parse(printConfig(rows, true))).toContainEqual({
      setting: 'pathSecret',
      value: '(set)',
      source: 'environment CUVETTE_PATH_SECRET',
      flag: '--path-secret',
      variables: ['CUVETTE_PATH_SECRET'],
    });
  });
});

it('every setting is in the documentation, with all its names', () => {
  const lines = readFileSync(new URL('../docs/settings.md', import.meta.url), 'utf8').split('\n');
  const missing = explainConfig({}, {}).filter(
    ({ setting, flag, variables }) =>
      !lines.some(
        (line) =>
          new RegExp(`^\\| \`${flag}[ \`]`).test(line) &&
          [setting, ...variables].every((name) => line.includes(`\`${name}\``)),
      ),
  );
  expect(missing.map(({ setting }) => setting)).toEqual([]);
});

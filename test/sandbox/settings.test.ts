import { describe, expect, it } from 'vitest';
import { parseServerFlags } from '../../src/cli/server-flags.ts';
import { readConfig } from '../../src/config.ts';
import { SETTINGS } from '../../src/settings.ts';

const GIB = 2 ** 30;

const ROWS = [
  { name: 'sandbox', flag: '--sandbox', variable: 'CUVETTE_SANDBOX', fallback: 'auto', given: 'on', value: 'on' },
  { name: 'network', flag: '--network', variable: 'CUVETTE_NETWORK', fallback: 'none', given: 'allow', value: 'allow' },
  {
    name: 'sessionMemory',
    flag: '--session-memory',
    variable: 'CUVETTE_SESSION_MEMORY',
    fallback: 2 * GIB,
    given: '512MiB',
    value: 512 * 2 ** 20,
  },
  {
    name: 'sessionProcesses',
    flag: '--session-processes',
    variable: 'CUVETTE_SESSION_PROCESSES',
    fallback: 256,
    given: '64',
    value: 64,
  },
  { name: 'sessionCpus', flag: '--session-cpus', variable: 'CUVETTE_SESSION_CPUS', fallback: 0, given: '2', value: 2 },
  {
    name: 'sessionOpenFiles',
    flag: '--session-open-files',
    variable: 'CUVETTE_SESSION_OPEN_FILES',
    fallback: 4096,
    given: '128',
    value: 128,
  },
  {
    name: 'sessionQuota',
    flag: '--session-quota',
    variable: 'CUVETTE_SESSION_QUOTA',
    fallback: 10 * GIB,
    given: '1.5GB',
    value: 1_500_000_000,
  },
  {
    name: 'sessionFileCount',
    flag: '--session-file-count',
    variable: 'CUVETTE_SESSION_FILE_COUNT',
    fallback: 200_000,
    given: '5000',
    value: 5000,
  },
] as const;

describe.each(ROWS)('the setting $name', ({ name, flag, variable, fallback, given, value }) => {
  it('has a default, a variable and a flag, which comes first', () => {
    expect(readConfig({}, {})[name]).toEqual(fallback);
    expect(readConfig({}, { [variable]: given })[name]).toEqual(value);
    expect(readConfig({}, { [variable]: '' })[name]).toEqual(fallback);
    expect(parseServerFlags([flag, given], 'serve', {}).config[name]).toEqual(value);
    expect(parseServerFlags([flag, given], 'serve', { [variable]: String(fallback) }).config[name]).toEqual(value);
  });

  it('is one of `cuvette mcp`, too', () => {
    expect(parseServerFlags([flag, given], 'mcp', {}).config[name]).toEqual(value);
    expect(parseServerFlags([], 'mcp', { [variable]: given }).config[name]).toEqual(value);
  });

  it('comes from a file', () => {
    expect(readConfig({}, {}, { path: '/x/cuvette.json', values: { [name]: given } })[name]).toEqual(value);
  });

  it('is no secret', () => {
    expect(SETTINGS.find((setting) => setting.name === name)?.kind).toBeUndefined();
  });
});

describe('the setting of a limit', () => {
  const numbers = ['sessionProcesses', 'sessionCpus', 'sessionOpenFiles', 'sessionFileCount'];
  const sizes = ['sessionMemory', 'sessionQuota'];

  it.each([...numbers, ...sizes])('of %s may be 0, for none', (name) => {
    expect(readConfig({ [name]: '0' }, {})).toHaveProperty(name, 0);
  });

  it.each(numbers.flatMap((name) => ['-1', '1.5', 'many', 'NaN', 'Infinity', ' '].map((value) => [name, value])))(
    'of %s cannot be %j, and the message says which setting it is',
    (name = '', value = '') => {
      expect(() => readConfig({ [name]: value }, {})).toThrow(`The setting ${name} `);
    },
  );

  it.each(sizes.flatMap((name) => ['-1', '-1GB', '5 apples', '1GiBB', 'NaN', 'B'].map((value) => [name, value])))(
    'of %s cannot be %j',
    (name = '', value = '') => {
      expect(() => readConfig({ [name]: value }, {})).toThrow(/expected bytes, such as 1048576, 10MB or 2GiB|>=0/);
    },
  );
});

describe('the setting of the sandbox', () => {
  it.each(['auto', 'on', 'off'])('is %s', (sandbox) => {
    expect(readConfig({ sandbox }, {}).sandbox).toBe(sandbox);
  });

  it.each(['yes', 'true', 'none', 'ON'])('is not %s', (sandbox) => {
    expect(() => readConfig({ sandbox }, {})).toThrow('The setting sandbox (--sandbox, CUVETTE_SANDBOX');
  });
});

describe('the setting of the network', () => {
  it.each([
    ['packages.example.org', ['packages.example.org']],
    ['packages.example.org,files.example.org', ['packages.example.org', 'files.example.org']],
    [' packages.example.org , *.example.com:8443 ', ['packages.example.org', '*.example.com:8443']],
    ['[::1]:8080', ['[::1]:8080']],
    ['none,packages.example.org', ['none', 'packages.example.org']],
  ])('has in %j the hosts %j', (given, hosts) => {
    expect(readConfig({ network: given }, {}).network).toEqual(hosts);
  });

  it.each(['packages.example.org,', ',', ' ', 'packages.example.org,,example.com'])(
    'has no empty host, as in %j',
    (given) => {
      expect(() => readConfig({ network: given }, {})).toThrow(/The setting network \(--network, CUVETTE_NETWORK/);
    },
  );
});

import { describe, expect, it } from 'vitest';
import { readConfig } from '../src/config.ts';

describe('settings', () => {
  it('have defaults', () => {
    expect(readConfig({}, {})).toEqual({
      autoInstall: true,
      timeout: 300,
      outputLimit: 25_000,
      maxOutput: 100_000_000,
      linger: 3600,
      idle: 0,
      logLevel: 'warn',
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
    expect(readConfig({}, env)).toEqual({
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

  it('given as flags come before the environment', () => {
    const config = readConfig(
      { timeout: '7', autoInstall: false },
      { CUVETTE_TIMEOUT: '8', CUVETTE_AUTO_INSTALL: '1' },
    );
    expect(config).toMatchObject({ timeout: 7, autoInstall: false });
  });

  it('take the first name of a setting that has two', () => {
    expect(readConfig({}, { EXECUTION_TIMEOUT: '9' }).timeout).toBe(9);
    expect(readConfig({}, { EXECUTION_TIMEOUT: '9', CUVETTE_TIMEOUT: '8' }).timeout).toBe(8);
  });

  it('take an empty variable as not set', () => {
    expect(readConfig({}, { CUVETTE_TIMEOUT: '', CUVETTE_AUTO_INSTALL: '' })).toEqual(readConfig({}, {}));
  });

  it.each(['0', 'false', 'no', 'off', 'FALSE'])('turn automatic installs off with %s', (value) => {
    expect(readConfig({}, { CUVETTE_AUTO_INSTALL: value }).autoInstall).toBe(false);
  });

  it('allow no limit of time', () => {
    expect(readConfig({ timeout: '0' }, {}).timeout).toBe(0);
  });

  it.each([
    ['timeout', 'CUVETTE_TIMEOUT', 'soon'],
    ['timeout', 'CUVETTE_TIMEOUT', '-1'],
    ['outputLimit', 'CUVETTE_OUTPUT_LIMIT', '999'],
    ['outputLimit', 'CUVETTE_OUTPUT_LIMIT', '2000.5'],
    ['maxOutput', 'CUVETTE_MAX_OUTPUT', '10'],
    ['linger', 'CUVETTE_LINGER', '0'],
    ['autoInstall', 'CUVETTE_AUTO_INSTALL', 'maybe'],
    ['logLevel', 'CUVETTE_LOG_LEVEL', 'loud'],
  ])('refuse %s from %s=%s', (setting, variable, value) => {
    expect(() => readConfig({}, { [variable]: value })).toThrow(`The setting ${setting} (`);
  });

  it('name the flag and the variable of what is wrong', () => {
    expect(() => readConfig({ outputLimit: 'many' }, {})).toThrow('--output-limit, CUVETTE_OUTPUT_LIMIT');
    expect(() => readConfig({ timeout: 'x' }, {})).toThrow('--timeout, CUVETTE_TIMEOUT, EXECUTION_TIMEOUT');
  });
});

import { describe, expect, test } from 'vitest';
import { parseServerFlags } from '../../src/cli/server-flags.ts';

describe('parseServerFlags', () => {
  test.each([
    ['serve', '--max-sesions', '--max-sessions'],
    ['serve', '--print-confg', '--print-config'],
    ['mcp', '--no-auto-instal', '--no-auto-install'],
    ['mcp', '--projct', '--project'],
  ] as const)('of %s refuses the unknown flag %s and names %s', (command, given, meant) => {
    expect(() => parseServerFlags([given, '1'], command, {})).toThrow(
      `Unknown option '${given}'; did you mean ${meant}? Run: cuvette help`,
    );
  });

  test('names environment variables that look like mistyped settings', () => {
    const env = { CUVETTE_TIMOUT: '5', CUVETTE_MAX_SESION: '1' };
    expect(parseServerFlags([], 'serve', env).mistyped).toEqual([
      'CUVETTE_TIMOUT (did you mean CUVETTE_TIMEOUT?)',
      'CUVETTE_MAX_SESION (did you mean CUVETTE_MAX_SESSIONS?)',
    ]);
  });

  test('says nothing of variables that other programs, Kubernetes or Cuvette itself set', () => {
    const env = {
      CUVETTE_HOME: '/x',
      CUVETTE_SESSION: 'x',
      CUVETTE_LAB_TOKEN: 'x',
      CUVETTE_TORCH_PYTHON: 'x',
      CUVETTE_SERVICE_HOST: '10.0.0.1',
      CUVETTE_PORT_8000_TCP_ADDR: '10.0.0.1',
      TIMOUT: '5',
    };
    expect(parseServerFlags([], 'serve', env).mistyped).toEqual([]);
  });
});

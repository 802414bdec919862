import { describe, expect, test } from 'vitest';
import { CALL, COMMAND_FLAGS, LAB_DEMO, LAB_SERVE, parseFlags, RUN } from '../../src/cli/command-flags.ts';

describe('parseFlags', () => {
  test.each([
    ['run', RUN, '--timout', '--timeout'],
    ['run', RUN, '--interpeter', '--interpreter'],
    ['call', CALL, '--sever', '--server'],
    ['lab serve', LAB_SERVE, '--modle', '--model'],
    ['lab demo', LAB_DEMO, '--seeds', '--seed'],
  ])('of %s refuses the unknown flag %#, %3$s, with the nearest known one', (_, options, given, meant) => {
    expect(() => parseFlags({ args: [given, '1'], allowPositionals: true, options })).toThrow(
      `Unknown option '${given}'; did you mean ${meant}? Run: cuvette help`,
    );
  });

  test('refuses an unknown flag that resembles none without a guess', () => {
    expect(() => parseFlags({ args: ['--dance'], options: RUN })).toThrow(
      "Unknown option '--dance'. Run: cuvette help",
    );
  });

  test('names the nearest negation where switches can be negated', () => {
    const options = { 'auto-install': { type: 'boolean' } } as const;
    expect(() => parseFlags({ args: ['--no-auto-instal'], allowNegative: true, options })).toThrow(
      'did you mean --no-auto-install?',
    );
  });

  test('takes the defaults that help shows', () => {
    expect(parseFlags({ args: [], options: LAB_DEMO }).values).toEqual({ out: 'cuvette-lab-report.html', seed: '0' });
    expect(parseFlags({ args: [], options: LAB_SERVE }).values).toMatchObject({ model: 'demo', tunnel: 'none' });
  });
});

test('every flag of every command has a description, and every flag with a value a name for it', () => {
  const flags = Object.values(COMMAND_FLAGS).flatMap((all) => Object.values(all));
  expect(
    flags.filter(({ type, value, about }) => about === '' || (type === 'string') === (value === undefined)),
  ).toEqual([]);
});

import { describe, expect, test } from 'vitest';
import { type Ended, endingOf, remarksOn } from '../../../src/lab/remote/service-ending.ts';
import { endingFrom } from '../../../src/sessions/ending.ts';

const WELL: Ended = {
  outcome: 'ok',
  reason: null,
  exit_code: 0,
  variables_survived: true,
  wall_seconds: 1.5,
  cpu_seconds: 0.5,
  peak_memory_bytes: 1000,
  installed: [],
  ended_processes: ['sleep 60'],
  notes: [],
};

const badly = (code: string, more: Partial<Ended> = {}): Ended => ({
  ...WELL,
  outcome: 'error',
  exit_code: 1,
  reason: { code, message: `It was ${code}.` },
  ...more,
});
const dead = { outcome: 'died', variables_survived: false } as const;

test('what was measured there is what is told here', () => {
  expect(endingOf(WELL, undefined)).toEqual({ status: 'ok', wall: 1.5, cpu: 0.5, peak: 1000, ended: ['sleep 60'] });
});

describe('judged here, an ending has the outcome, the reason and the exit code that it had there', () => {
  test.each<[string, Ended]>([
    ['ok', WELL],
    ['exception', badly('exception')],
    ['exit', badly('exit', { exit_code: 3 })],
    ['timeout', badly('timeout', { outcome: 'timeout', exit_code: 124 })],
    ['timeout', badly('timeout', { outcome: 'timeout', exit_code: 124, variables_survived: false })],
    ['cancelled', badly('cancelled', { outcome: 'cancelled', exit_code: 130 })],
    ['cancelled', badly('cancelled', { outcome: 'cancelled', exit_code: 130, variables_survived: false })],
    ['output-limit', badly('output-limit')],
    ['process-exit', badly('process-exit', { ...dead, exit_code: 7 })],
    ['signal', badly('signal', { ...dead, exit_code: 139 })],
    ['oom', badly('oom', { ...dead, exit_code: 137 })],
    ['broken-channel', badly('broken-channel', dead)],
  ])('%s', (code, ended) => {
    const verdict = endingFrom(endingOf(ended, 'ValueError'), { timeout: 1, maxOutput: 10 });
    expect([verdict.outcome, verdict.reason?.code ?? 'ok', verdict.exitCode, verdict.variablesSurvived]).toEqual([
      ended.outcome,
      code,
      ended.exit_code,
      ended.variables_survived,
    ]);
  });
});

test('an exception keeps its name', () => {
  expect(endingOf(badly('exception'), 'KeyError')).toMatchObject({ status: 'error', errorName: 'KeyError' });
});

describe('remarks', () => {
  test('pass on what is not said here: notes, installed packages, and limits of the service', () => {
    const installed = [{ distribution: 'six', version: '1.0' }];
    expect(remarksOn(badly('disk-quota', { notes: ['a note'], installed }))).toEqual([
      'a note',
      'installed six 1.0 there',
      'It was disk-quota.',
    ]);
  });

  test('do not repeat a reason that is', () => {
    expect(remarksOn(badly('timeout'))).toEqual([]);
  });
});

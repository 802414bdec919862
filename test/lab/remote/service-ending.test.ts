import { describe, expect, test } from 'vitest';
import type { EndedRun } from '../../../src/interpreters/execution-events.ts';
import { endingOf } from '../../../src/lab/remote/service-ending.ts';
import { endingFrom } from '../../../src/sessions/ending.ts';
import { RAN_WELL as WELL } from './ran-well.ts';

const badly = (reason: string, more: Partial<EndedRun> = {}): EndedRun => ({
  ...WELL,
  outcome: 'error',
  code: 1,
  reason,
  message: `It was ${reason}.`,
  ...more,
});
const dead = { outcome: 'died', variables_survived: false } as const;
const stopped = { rung: 'interrupted' } as const;
const killed = { rung: 'killed', variables_survived: false } as const;

test('what a service has measured is what is told here', () => {
  const ending = { status: 'ok', wall: 1.5, cpu: 0.5, peak: 1000, ended: ['sleep 60'] };
  expect(endingOf(WELL)).toEqual({ ending, remarks: [] });
});

describe('judged here, an ending at a service has the outcome, the reason, the exit code and the signal that it had there', () => {
  test.each<[string, EndedRun]>([
    ['ok', WELL],
    ['exception', badly('exception')],
    ['exit', badly('exit', { code: 3 })],
    ['timeout', badly('timeout', { outcome: 'timeout', code: 124, ...stopped })],
    ['timeout', badly('timeout', { outcome: 'timeout', code: 124, ...killed })],
    ['cancelled', badly('cancelled', { outcome: 'cancelled', code: 130, ...stopped })],
    ['cancelled', badly('cancelled', { outcome: 'cancelled', code: 130, rung: 'children-killed' })],
    ['cancelled', badly('cancelled', { outcome: 'cancelled', code: 130, ...killed })],
    ['output-limit', badly('output-limit', stopped)],
    ['process-exit', badly('process-exit', { ...dead, code: 137 })],
    ['signal', badly('signal', { ...dead, code: 139, signal: 'SIGSEGV' })],
    ['oom', badly('oom', { ...dead, code: 137, signal: 'SIGKILL' })],
    ['broken-channel', badly('broken-channel', dead)],
  ])('%s', (code, run) => {
    const verdict = endingFrom(endingOf(run, { errorName: 'ValueError' }).ending, { timeout: 1, maxOutput: 10 });
    expect([verdict.outcome, verdict.reason?.code ?? 'ok', verdict.exitCode, verdict.variablesSurvived]).toEqual([
      run.outcome,
      code,
      run.code,
      run.variables_survived,
    ]);
    expect([verdict.signal ?? null, verdict.rung ?? null]).toEqual([run.signal, run.rung]);
  });
});

test('an exception at a service keeps its name', () => {
  const { ending } = endingOf(badly('exception'), { errorName: 'KeyError' });
  expect(ending).toMatchObject({ status: 'error', errorName: 'KeyError' });
});

test('code that this side stopped has the reason of this side', () => {
  const run = badly('cancelled', { outcome: 'cancelled', code: 130, ...stopped });
  expect(endingOf(run, { stopped: 'output-limit' }).ending.stopped).toEqual({
    why: 'output-limit',
    rung: 'interrupted',
  });
});

describe('remarks on an ending at a service', () => {
  test('pass on what is not said here: notes, and limits of the service', () => {
    expect(endingOf({ ...WELL, notes: ['a note', 'Installed six 1.0.'] }).remarks).toEqual([
      'a note',
      'Installed six 1.0.',
    ]);
    const notes = ['a note'];
    expect(endingOf(badly('disk-quota', { message: 'It was disk-quota. a note', notes })).remarks).toEqual([
      'It was disk-quota. a note',
    ]);
  });

  test('do not repeat a reason that is said here', () => {
    expect(endingOf(badly('timeout', { outcome: 'timeout', ...stopped })).remarks).toEqual([]);
  });
});

describe('an older service, which does not tell how code ended,', () => {
  const older = { stdout: '', code: 137, signal: 'SIGKILL', status: 'SG', reason: 'signal', message: 'It died.' };

  test('has an ending whose reason is not known, and is not guessed from the exit code or the message', () => {
    const { ending, remarks } = endingOf({ ...older, message: 'The interpreter was killed by SIGSEGV.' });
    expect(ending).toEqual({ status: 'error', errorName: 'unknown', wall: 0, cpu: 0, peak: 0, ended: [] });
    expect(remarks).toEqual([
      expect.stringMatching(/older than this Cuvette.*reason is not known, nor whether variables survived/),
      'The interpreter was killed by SIGSEGV.',
    ]);
  });

  test('has an ending that is well if the service says so', () => {
    const { ending, remarks } = endingOf({
      ...older,
      code: 0,
      signal: null,
      status: null,
      reason: null,
      message: null,
    });
    expect([ending.status, remarks]).toEqual(['ok', []]);
  });

  test('keeps the name of an exception that it showed', () => {
    expect(endingOf(older, { errorName: 'KeyError' }).ending).toMatchObject({ status: 'error', errorName: 'KeyError' });
  });

  test('that says nothing of the run is not taken to have run it well', () => {
    expect(endingOf(undefined).ending).toMatchObject({ status: 'error', errorName: 'unknown' });
  });
});

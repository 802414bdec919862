import { describe, expect, it } from 'vitest';
import type { Escalation, ExitReport, StopReason } from '../../src/interpreters/interpreter.ts';
import { endingFrom, endingNotStarted, endingOfLostInterpreter } from '../../src/sessions/ending.ts';

const limits = { timeout: 5, maxOutput: 100_000_000 };

function ending(different: Partial<ExitReport>): ExitReport {
  return { status: 'ok', wall: 1, cpu: 1, peak: 1, ended: [], ...different };
}

function died(death: Partial<NonNullable<ExitReport['death']>>, different: Partial<ExitReport> = {}): ExitReport {
  return ending({ status: 'death', death: { exit: null, signal: null, oom: false, ...death }, ...different });
}

function stopped(why: StopReason, rung: Escalation): ExitReport {
  if (rung === 'killed') return died({ signal: 'SIGKILL' }, { stopped: { why, rung } });
  return ending({ status: 'error', errorName: 'KeyboardInterrupt', stopped: { why, rung } });
}

describe('the ending of code that came to its end', () => {
  it('is ok', () => {
    expect(endingFrom(ending({}), limits)).toEqual({
      outcome: 'ok',
      reason: null,
      exitCode: 0,
      variablesSurvived: true,
    });
  });

  it('is an error when it raised, and the exception is named', () => {
    expect(endingFrom(ending({ status: 'error', errorName: 'ZeroDivisionError' }), limits)).toEqual({
      outcome: 'error',
      reason: { code: 'exception', message: 'The code raised ZeroDivisionError.' },
      exitCode: 1,
      variablesSurvived: true,
    });
  });

  it('is ok when it left by sys.exit() or sys.exit(0)', () => {
    expect(endingFrom(ending({ status: 'exit' }), limits).outcome).toBe('ok');
    expect(endingFrom(ending({ status: 'exit', exitCode: 0 }), limits)).toMatchObject({ outcome: 'ok', exitCode: 0 });
  });

  it('keeps its status and its variables when it left by sys.exit(3)', () => {
    const verdict = endingFrom(ending({ status: 'exit', exitCode: 3 }), limits);
    expect(verdict).toMatchObject({ outcome: 'error', exitCode: 3, variablesSurvived: true });
    expect(verdict.reason).toEqual({
      code: 'exit',
      message: 'The code called sys.exit with status 3. Variables survived.',
    });
  });
});

describe('the ending of code that was stopped', () => {
  it.each<[StopReason, string, string, number]>([
    ['timeout', 'timeout', 'timeout', 124],
    ['cancelled', 'cancelled', 'cancelled', 130],
    ['output-limit', 'error', 'output-limit', 1],
  ])('by %s has the outcome %s', (why, outcome, code, exitCode) => {
    const verdict = endingFrom(stopped(why, 'interrupted'), limits);
    expect(verdict).toMatchObject({ outcome, exitCode, variablesSurvived: true, reason: { code } });
    expect(verdict.reason?.message).toContain('Variables survived.');
  });

  it.each<[Escalation, string, boolean]>([
    ['interrupted', 'it was interrupted', true],
    ['children-killed', 'the processes it had started were ended', true],
    ['killed', 'its interpreter was ended', false],
  ])('on the rung %s says how, and what became of its variables', (rung, how, survived) => {
    const verdict = endingFrom(stopped('timeout', rung), limits);
    expect(verdict.reason?.message).toContain(how);
    expect(verdict.reason?.message.includes('Its variables are lost')).toBe(!survived);
    expect(verdict.variablesSurvived).toBe(survived);
  });

  it('by a limit is told the limit', () => {
    expect(endingFrom(stopped('timeout', 'interrupted'), limits).reason?.message).toContain('Timed out after 5 s');
    expect(endingFrom(stopped('output-limit', 'interrupted'), limits).reason?.message).toContain(
      '100,000,000 characters',
    );
  });

  it('and died of it is judged by why it was stopped, not by how it died', () => {
    expect(endingFrom(stopped('cancelled', 'killed'), limits)).toMatchObject({
      outcome: 'cancelled',
      exitCode: 130,
      variablesSurvived: false,
    });
  });
});

describe('the ending of code that ended its interpreter', () => {
  it('by os._exit keeps its status', () => {
    const verdict = endingFrom(died({ exit: 7 }), limits);
    expect(verdict).toMatchObject({ outcome: 'died', exitCode: 7, reason: { code: 'process-exit' } });
    expect(verdict.reason?.message).toContain('exit status 7');
  });

  it.each([
    ['SIGSEGV', 139, 'segmentation fault'],
    ['SIGKILL', 137, 'killed by SIGKILL'],
    ['SIGTERM', 143, 'killed by SIGTERM'],
    ['SIGABRT', 134, 'killed by SIGABRT'],
  ])('by %s has the status that a shell would see', (signal, exitCode, words) => {
    const verdict = endingFrom(died({ signal }), limits);
    expect(verdict).toMatchObject({ outcome: 'died', exitCode, reason: { code: 'signal' } });
    expect(verdict.reason?.message).toContain(words);
  });

  it.each([
    ['SIGILL', 132],
    ['SIGQUIT', 131],
    ['SIGXCPU', 152],
  ])('by the rarer %s too', (signal, exitCode) => {
    expect(endingFrom(died({ signal }), limits).exitCode).toBe(exitCode);
  });

  it('for want of memory is told so', () => {
    const verdict = endingFrom(died({ signal: 'SIGKILL', oom: true }), limits);
    expect(verdict).toMatchObject({ outcome: 'died', exitCode: 137, reason: { code: 'oom' } });
  });

  it('with another signal while memory ran out elsewhere did not die of that', () => {
    expect(endingFrom(died({ signal: 'SIGSEGV', oom: true }), limits).reason?.code).toBe('signal');
  });

  it('by breaking its control channel is told so, not that it was killed', () => {
    const verdict = endingFrom(died({ signal: 'SIGKILL' }, { brokeChannel: true }), limits);
    expect(verdict).toMatchObject({ outcome: 'died', exitCode: 1, reason: { code: 'broken-channel' } });
  });

  it.each([{ exit: 7 }, { signal: 'SIGSEGV' }, { signal: 'SIGKILL', oom: true }])(
    'always lost its variables (%o)',
    (death) => {
      const verdict = endingFrom(died(death), limits);
      expect(verdict.variablesSurvived).toBe(false);
      expect(verdict.reason?.message).toContain('the next call runs in a fresh interpreter');
    },
  );
});

describe('the ending of code whose interpreter does not tell', () => {
  it('is died, for a lost interpreter', () => {
    expect(endingOfLostInterpreter()).toMatchObject({
      outcome: 'died',
      exitCode: 137,
      variablesSurvived: false,
      reason: { code: 'interpreter-lost' },
    });
  });

  it('is cancelled for code that never ran, and its variables survive', () => {
    expect(endingNotStarted('Too late.')).toEqual({
      outcome: 'cancelled',
      reason: { code: 'not-started', message: 'Too late.' },
      exitCode: 130,
      variablesSurvived: true,
    });
  });
});

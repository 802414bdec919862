import { describe, expect, it } from 'vitest';
import type { ExitReport, ReachedLimit } from '../../src/interpreters/interpreter.ts';
import type { Policy } from '../../src/sandbox/policy.ts';
import { describeLimit, type Ending, endingFrom, reachedLimitOf } from '../../src/sessions/ending.ts';

const MIB = 2 ** 20;
const SESSION: Policy['limits'] = {
  memory: 512 * MIB,
  processes: 1064,
  cpus: 0,
  openFiles: 100,
  disk: 1.5 * 1024 * MIB,
  fileCount: 5000,
};
const LIMITS = { timeout: 5, maxOutput: 1000, session: SESSION };
const SAYS: Record<ReachedLimit, string> = {
  oom: "It ran into the limit of its session's memory, 512 MiB.",
  'too-many-processes': "It ran into the limit of its session's processes and threads, 1,064.",
  'disk-quota': "It ran into the limit of its session's disk, 1.5 GiB or 5,000 files.",
};
const HITS = Object.keys(SAYS) as ReachedLimit[];

function ending(different: Partial<ExitReport>): ExitReport {
  return { status: 'ok', wall: 1, cpu: 1, peak: 1, ended: [], ...different };
}

const raised = (errorName: string, different: Partial<ExitReport> = {}) =>
  ending({ status: 'error', errorName, ...different });
const killed = (different: Partial<ExitReport> = {}) =>
  ending({ status: 'death', death: { exit: null, signal: 'SIGKILL', oom: true }, ...different });
const program = (different: Partial<ExitReport>) => ending({ steps: 1, ...different });

const said = ({ reason }: Ending) => reason?.message ?? '';

describe('code that ran into a limit of its session', () => {
  it.each(HITS)('and raised is told the limit, %s', (hit) => {
    const verdict = endingFrom(raised('OSError', { hit: [hit] }), LIMITS);
    expect(verdict).toMatchObject({ outcome: 'error', exitCode: 1, variablesSurvived: true, reason: { code: hit } });
    expect(said(verdict)).toContain(SAYS[hit]);
    expect(said(verdict)).toContain('Variables survived.');
  });

  it.each(HITS)('and died of it is told the limit, and that its variables are lost: %s', (hit) => {
    const verdict = endingFrom(killed({ hit: [hit] }), LIMITS);
    expect(verdict).toMatchObject({ outcome: 'died', exitCode: 137, variablesSurvived: false, reason: { code: hit } });
    expect(said(verdict)).toContain(SAYS[hit]);
    expect(said(verdict)).toContain('Its variables are lost');
  });

  it.each(HITS)('and was a program is told the limit, and nothing of variables: %s', (hit) => {
    for (const how of [{ exitCode: 2 }, { signal: 'SIGKILL', exitCode: 137 }]) {
      const verdict = endingFrom(program({ ...how, hit: [hit] }), LIMITS);
      expect(verdict).toMatchObject({ exitCode: how.exitCode, reason: { code: hit } });
      expect(said(verdict)).toContain(SAYS[hit]);
      expect(said(verdict)).not.toMatch(/ariables/);
    }
  });

  it.each(HITS)('is told what to do: %s', (hit) => {
    const advice = { oom: 'smaller pieces', 'too-many-processes': 'Start fewer', 'disk-quota': 'remove files' };
    expect(said(endingFrom(raised('OSError', { hit: [hit] }), LIMITS))).toContain(advice[hit]);
  });

  it('and handled the error is ok', () => {
    for (const hit of HITS) {
      expect(endingFrom(ending({ hit: [hit] }), LIMITS)).toMatchObject({ outcome: 'ok', reason: null, exitCode: 0 });
      expect(endingFrom(program({ exitCode: 0, hit: [hit] }), LIMITS)).toMatchObject({ outcome: 'ok', reason: null });
    }
  });

  it('and asked for too much memory in one piece was refused, and lives', () => {
    const verdict = endingFrom(raised('MemoryError'), LIMITS);
    expect(verdict).toMatchObject({ outcome: 'error', variablesSurvived: true, reason: { code: 'oom' } });
    expect(said(verdict)).toContain(SAYS.oom);
  });

  it('and left by sys.exit keeps its status', () => {
    const verdict = endingFrom(ending({ status: 'exit', exitCode: 3, hit: ['oom'] }), LIMITS);
    expect(verdict).toMatchObject({ outcome: 'error', exitCode: 3, reason: { code: 'oom' } });
  });
});

describe.each(['disk-quota', 'too-many-processes'] as const)('code that was stopped for %s', (why) => {
  it.each([true, false])('is told so, and whether its variables survived: %s', (survived) => {
    const stopped = { why, rung: survived ? 'interrupted' : 'killed' } as const;
    const verdict = endingFrom(survived ? raised('KeyboardInterrupt', { stopped }) : killed({ stopped }), LIMITS);
    expect(verdict).toMatchObject({ outcome: 'error', exitCode: 1, variablesSurvived: survived });
    expect(verdict.reason?.code).toBe(why);
    expect(said(verdict)).toContain(SAYS[why]);
    expect(said(verdict)).toContain(survived ? 'Variables survived.' : 'Its variables are lost');
  });

  it('was stopped for that, even if it ran into another limit meanwhile', () => {
    const stopped = { why, rung: 'interrupted' } as const;
    const hit: ReachedLimit[] = ['oom', 'too-many-processes', 'disk-quota'];
    expect(reachedLimitOf(raised('MemoryError', { stopped, hit }), SESSION)).toBe(why);
  });
});

describe('code that was stopped for another reason, and ran into a limit, too', () => {
  it.each([
    ['timeout', 'timeout', 124],
    ['output-limit', 'error', 1],
  ] as const)('is judged by %s, and told the limit beside', (why, outcome, exitCode) => {
    const stopped = { why, rung: 'interrupted' } as const;
    const verdict = endingFrom(raised('KeyboardInterrupt', { stopped, hit: ['too-many-processes'] }), LIMITS);
    expect(verdict).toMatchObject({ outcome, exitCode, reason: { code: why } });
    expect(said(verdict)).toContain(SAYS['too-many-processes']);
    expect(said(verdict).startsWith(said(endingFrom(raised('KeyboardInterrupt', { stopped }), LIMITS)))).toBe(true);
  });

  it('is only told that it was cancelled, if it was', () => {
    const stopped = { why: 'cancelled', rung: 'interrupted' } as const;
    const cancelled = raised('KeyboardInterrupt', { stopped });
    expect(endingFrom({ ...cancelled, hit: ['oom'] }, LIMITS)).toEqual(endingFrom(cancelled, LIMITS));
  });
});

describe('code of a session without limits', () => {
  const unlimited = { timeout: 5, maxOutput: 1000 };

  it('is told only how it ended', () => {
    for (const one of [raised('MemoryError'), raised('OSError', { hit: ['disk-quota'] }), program({ exitCode: 2 })]) {
      const { reason } = endingFrom(one, unlimited);
      expect(['exception', 'exit']).toContain(reason?.code);
    }
  });

  it('that died for want of memory is told of the machine, not of a limit', () => {
    expect(said(endingFrom(killed(), unlimited))).toContain('The machine ran out of memory');
    const died = program({ signal: 'SIGKILL', isOutOfMemory: true, exitCode: 137 });
    expect(endingFrom(died, unlimited)).toMatchObject({ reason: { code: 'oom' } });
    expect(said(endingFrom(died, unlimited))).toContain('the machine ran out of memory');
  });

  it('is never told of a limit that is not there', () => {
    const none = { ...LIMITS, session: { ...SESSION, memory: 0, processes: 0, disk: 0 } };
    expect(said(endingFrom(raised('MemoryError'), none))).not.toContain('0 MiB');
    expect(endingFrom(raised('MemoryError'), none).reason?.code).toBe('exception');
    const many = said(endingFrom(raised('OSError', { hit: ['disk-quota'] }), none));
    expect(many).toContain('disk, 5,000 files.');
    const large = { ...LIMITS, session: { ...SESSION, fileCount: 0 } };
    expect(said(endingFrom(raised('OSError', { hit: ['disk-quota'] }), large))).toContain('disk, 1.5 GiB.');
  });
});

describe('the limit behind an ending', () => {
  it.each([
    [MIB, '1 MiB'],
    [1.5 * MIB, '1.5 MiB'],
    [1024 * MIB - 1, '1024 MiB'],
    [1024 * MIB, '1 GiB'],
    [2.25 * 1024 * MIB, '2.3 GiB'],
  ])('of %d bytes of memory is told as %s', (memory, text) => {
    expect(describeLimit('oom', { ...SESSION, memory })).toContain(`memory, ${text}.`);
  });

  it('is the first that was hit', () => {
    expect(reachedLimitOf(ending({ hit: ['too-many-processes', 'disk-quota'] }), SESSION)).toBe('too-many-processes');
    expect(reachedLimitOf(ending({ hit: [] }), SESSION)).toBeUndefined();
    expect(reachedLimitOf(ending({}), SESSION)).toBeUndefined();
    expect(reachedLimitOf(raised('ValueError'), SESSION)).toBeUndefined();
  });
});

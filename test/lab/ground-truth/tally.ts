/** Counts what the protocol was right about: by family, as a confusion matrix of truths and verdicts, and as rates of false positives. */

import { VERDICTS, type VerdictName } from '../../../src/lab/causality/verdict.ts';
import type { Interval } from '../../../src/lab/statistics/bootstrap.ts';
import { clopperPearson } from '../../../src/lab/statistics/proportion.ts';
import type { GroundTruthRun } from './suite.ts';

export interface Tally {
  runs: number;
  right: number;
  abstained: number;
  rightReasons: number;
  families: Map<string, { right: number; abstained: number; of: number; verdicts: Map<string, number> }>;
  /** By truth, then by verdict. */
  confusion: Map<VerdictName, Map<VerdictName, number>>;
}

export function tally(runs: readonly GroundTruthRun[]): Tally {
  const families: Tally['families'] = new Map();
  const confusion: Tally['confusion'] = new Map(VERDICTS.map((truth) => [truth, new Map()]));
  for (const { family, truth, verdict, reason, outcome } of runs) {
    const counts = families.get(family) ?? { right: 0, abstained: 0, of: 0, verdicts: new Map<string, number>() };
    families.set(family, counts);
    counts.of += 1;
    if (outcome !== 'wrong') counts[outcome] += 1;
    count(counts.verdicts, `${verdict}: ${reason}`);
    count(confusion.get(truth.verdict) ?? new Map(), verdict);
  }
  return {
    runs: runs.length,
    right: runs.filter((run) => run.outcome === 'right').length,
    abstained: runs.filter((run) => run.outcome === 'abstained').length,
    rightReasons: runs.filter((run) => run.rightReason).length,
    families,
    confusion,
  };
}

export interface FalsePositives {
  count: number;
  of: number;
  /** By Clopper and Pearson. */
  interval: Interval;
}

/** Runs in which a direction that means nothing is said to be used, wholly or in part. */
export function falsePositives(runs: readonly GroundTruthRun[]): FalsePositives {
  const found = runs.filter(({ verdict }) => verdict === 'causal' || verdict === 'weak-causal').length;
  return { count: found, of: runs.length, interval: clopperPearson(found, runs.length) };
}

function count<K>(counts: Map<K, number>, key: K): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

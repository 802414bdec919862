/** Decides by a table of rows: the first that matches gives the verdict, and those before it are told, too. */

import type { CommonEvidence } from './common-evidence.ts';
import type { Verdict, VerdictName, VerdictReason } from './verdict.ts';
import { limitsOf, toThreeDigits } from './verdict-text.ts';

export interface Row {
  condition: string;
  /** What was measured, whether the row matches or not. */
  because: string;
  matched: boolean;
  verdict: VerdictName;
  reason: VerdictReason;
  sentence(): string;
  /** Where more data would settle it. */
  wanted?: Verdict['wanted'];
}

export function firstMatch(rows: Iterable<Row>, evidence: CommonEvidence): Verdict {
  const path: Verdict['path'] = [];
  for (const row of rows) {
    const { condition, because, matched, verdict, reason, wanted } = row;
    path.push({ condition, matched, because });
    if (!matched) continue;
    const limits = limitsOf(verdict, evidence);
    return { verdict, reason, sentence: row.sentence(), path, limits, ...(wanted && { wanted }) };
  }
  throw new Error('The last row of the decision table matches always.');
}

/** What both editions say of the structure-matched set. */
export function structureFound({ decodability, structureMatched }: CommonEvidence): string {
  if (!structureMatched) return 'no structure-matched set was given';
  const { auroc, interval } = structureMatched;
  return `AUROC ${toThreeDigits(auroc)} with 95 % interval ${toThreeDigits(interval.low)} to ${toThreeDigits(interval.high)} there, ${toThreeDigits(decodability.auroc)} on the dataset`;
}

export function decodabilityFound({ decodability: { auroc, interval, permutation } }: CommonEvidence): string {
  return `AUROC ${toThreeDigits(auroc)} with 95 % interval ${toThreeDigits(interval.low)} to ${toThreeDigits(interval.high)}, permutation p ${toThreeDigits(permutation.p)}`;
}

export function sweepFound({ sweep }: CommonEvidence): string {
  return `‖Δlogit‖/‖logit‖ is up to ${toThreeDigits(sweep.change)} in the sweep, of which one common factor explains ${toThreeDigits(sweep.commonScale)}`;
}

/** The conditions of the decision table that need no random directions: whether the classes can be told apart, and whether the model acts on them. */

import type { CommonEvidence } from './common-evidence.ts';
import { LEAST_GAP, SIGNIFICANCE } from './thresholds.ts';

/** The least AUROC that its interval must stay above. */
const LEAST_AUROC = 0.6;

export function isDecodable({ interval, permutation }: CommonEvidence['decodability']): boolean {
  return interval.low > LEAST_AUROC && permutation.p < SIGNIFICANCE;
}

/** On the structure-matched set, less than half of the margin over 0.5 is left, or nothing for certain. */
export function isConfounded(
  { auroc }: Pick<CommonEvidence['decodability'], 'auroc'>,
  matched: CommonEvidence['structureMatched'],
): boolean {
  if (!matched) return false;
  return matched.auroc - 0.5 < (auroc - 0.5) / 2 || matched.interval.low <= 0.5;
}

/** The whole interval of the natural gap is beyond the least gap, on either side. */
export function isExpressed({ interval }: Pick<CommonEvidence['behaviour'], 'interval'>): boolean {
  return interval.low >= LEAST_GAP || interval.high <= -LEAST_GAP;
}

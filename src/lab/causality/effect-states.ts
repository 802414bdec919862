/** Tells of each effect whether it is present, absent or unknown. Absence is shown by equivalence, never concluded from missing significance. */

import type { Interval } from '../statistics/bootstrap.ts';
import type { Effect } from './evidence.ts';
import { EQUIVALENCE, LEAST_EFFECT, SIGNIFICANCE } from './thresholds.ts';

export type EffectState = 'present' | 'absent' | 'unknown';

type Tested = Pick<Effect, 'interval' | 'adjusted' | 'quarter'>;

/**
 * Present: beyond random directions, and its interval beyond a twentieth of the behaviour. Absent: the whole interval within a tenth, where a quarter
 * would have been told from random directions. Unknown otherwise. Whether a quarter would be told is not adjusted for other questions: they make it
 * harder to find an effect, and must not make it harder to exclude one.
 */
export function stateOf({ interval, adjusted, quarter }: Tested): EffectState {
  if (isSignificant(adjusted) && isBeyond(interval)) return 'present';
  return isEquivalent(interval) && isFindable(quarter) ? 'absent' : 'unknown';
}

/** The smallest possible p value may equal the bound, and must not fail by rounding. */
export function isSignificant(adjusted: number): boolean {
  return adjusted <= SIGNIFICANCE + 1e-9;
}

/** A quarter of the behaviour is more than all but a twentieth of random directions do. */
export function isFindable(quarter: number): boolean {
  return quarter <= SIGNIFICANCE;
}

/** The near end is beyond the least effect, on either side. */
export function isBeyond({ low, high }: Interval): boolean {
  return low > LEAST_EFFECT || high < -LEAST_EFFECT;
}

/** All of it is nearer to nothing than what counts as an effect. */
export function isEquivalent({ low, high }: Interval): boolean {
  return low >= -EQUIVALENCE && high <= EQUIVALENCE;
}

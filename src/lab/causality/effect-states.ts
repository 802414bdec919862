/** Tells of each effect whether it is present, absent or unknown. Absence is shown by equivalence, never concluded from missing significance. */

import type { Interval } from '../statistics/bootstrap.ts';
import type { Effect } from './evidence.ts';
import { EQUIVALENCE, LEAST_EFFECT, SIGNIFICANCE } from './thresholds.ts';

export type EffectState = 'present' | 'absent' | 'unknown';

type Tested = Pick<Effect, 'interval' | 'adjusted'>;

/**
 * Present: beyond random directions, and its interval beyond a twentieth of the behaviour. Absent: the whole interval within a tenth. Unknown otherwise.
 * Random directions tell whether an effect is more than theirs; that there is none is told by its size alone, however much they do.
 */
export function stateOf({ interval, adjusted }: Tested): EffectState {
  if (isSignificant(adjusted) && isBeyond(interval)) return 'present';
  return isEquivalent(interval) ? 'absent' : 'unknown';
}

/** The smallest possible p value may equal the bound, and must not fail by rounding. */
export function isSignificant(adjusted: number): boolean {
  return adjusted <= SIGNIFICANCE + 1e-9;
}

/** The near end is beyond the least effect, on either side. */
export function isBeyond({ low, high }: Interval): boolean {
  return low > LEAST_EFFECT || high < -LEAST_EFFECT;
}

/** All of it is nearer to nothing than what counts as an effect. */
export function isEquivalent({ low, high }: Interval): boolean {
  return low >= -EQUIVALENCE && high <= EQUIVALENCE;
}

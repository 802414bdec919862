/** Tells what would settle effects that are neither present nor absent: how many more pairs of prompts, or how many random directions. */

import { isBeyond, isEquivalent, isSignificant, stateOf } from './effect-states.ts';
import type { Effect, Evidence } from './evidence.ts';
import { EQUIVALENCE, LEAST_EFFECT } from './thresholds.ts';
import type { Verdict } from './verdict.ts';

type Wanted = NonNullable<Verdict['wanted']>;

/** More than this nobody will gather: the effect lies too near to a bound. */
const MOST = 100_000;

/** For all unknown effects together; a number that is not there would settle nothing. */
export function shortfallOf(evidence: Evidence): Wanted {
  const unknown = effectsOf(evidence).filter((effect) => stateOf(effect) === 'unknown');
  const pairs = unknown.map((effect) => morePairs(effect, evidence)).filter((count) => count > 0);
  const directions = unknown.map((effect) => wantedDirections(effect, evidence)).filter((count) => count > 0);
  return {
    ...(pairs.length > 0 && { pairs: Math.max(...pairs) }),
    ...(directions.length > 0 && { randomDirections: Math.max(...directions) }),
  };
}

function effectsOf({ steering, interchange, ablation }: Evidence): Effect[] {
  return [steering, interchange, ablation];
}

/** The interval shrinks with the root of the number of pairs, until it is beyond the least effect or within the equivalence bound. */
function morePairs({ value, interval }: Effect, { data, split }: Evidence): number {
  if (isBeyond(interval) || isEquivalent(interval)) return 0;
  const size = Math.abs(value);
  const half = (interval.high - interval.low) / 2;
  const room = size > (LEAST_EFFECT + EQUIVALENCE) / 2 ? size - LEAST_EFFECT : EQUIVALENCE - size;
  const rows = data.pairs > 0 ? data.pairs : data.rows / 2;
  const share = split.intervened.length / split.test.length;
  const wanted = Math.min(MOST, Math.ceil((rows * (half / Math.max(room, 1e-3)) ** 2) / share));
  return Math.max(1, wanted - Math.floor(rows));
}

/** So many that none of them doing as much would be significant; 0 where random directions are not what is lacking, or do as much too often. */
function wantedDirections({ interval, adjusted, p }: Effect, { multiplicity }: Evidence): number {
  const { nulls, level } = multiplicity;
  const isLacking = isBeyond(interval) && !isSignificant(adjusted);
  // With so few, not even one that does as much would have been bearable.
  const isChance = p <= 2 / (nulls + 1);
  return isLacking && isChance ? Math.max(nulls + 1, Math.ceil(2 / level)) : 0;
}

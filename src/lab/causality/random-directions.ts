/** Tests the three effects against random directions, of which it adds more until the decision is stable, or the most that are allowed are reached. */

import { levelOfQuestion, spentUpTo } from '../statistics/alpha-spending.ts';
import { type Exceedance, exceedance } from '../statistics/null-tail.ts';
import { shareOf } from '../statistics/proportion.ts';
import { createRandom } from '../statistics/random.ts';
import { displaceAtRandom, type Parts } from './displacements.ts';
import type { Effect, Evidence } from './evidence.ts';
import type { InterventionSample } from './intervention-sample.ts';
import type { MarginReader } from './logit-margins.ts';
import type { CausalQuestion } from './question.ts';
import { randomSubspace } from './subspace.ts';
import { SIGNIFICANCE } from './thresholds.ts';

const FIRST = 99;
const MOST = 799;
/** In logits: effects that differ by less are equal within the rounding of float32. */
export const ROUNDING = 1e-5;

export interface NullPlan {
  /** Random directions to begin with, and at most. */
  first: number;
  most: number;
  /** Which question of the lab session this is. */
  question: number;
}

export function planNulls({ nulls, fewestNulls }: CausalQuestion, question: number): NullPlan {
  if (nulls !== undefined) return { first: nulls, most: nulls, question };
  const first = Math.max(FIRST, fewestNulls ?? FIRST);
  return { first, most: Math.max(MOST, first), question };
}

/** An effect before it is held against random directions. */
type Untested = Pick<Effect, 'value' | 'whole'>;

/** What random directions tell of the effects. */
export interface RandomTests extends Parts<Pick<Effect, 'null' | 'p' | 'adjusted'>> {
  multiplicity: Evidence['multiplicity'];
  untoldAtRandom: Evidence['temperature']['untoldAtRandom'];
}

const NAMES = ['steering', 'interchange', 'ablation'] as const;

/** The decision is stable if it is the same with either bound of how often random directions do as much. */
export async function testAgainstRandom(
  reader: MarginReader,
  sample: InterventionSample,
  effects: Parts<Untested>,
  plan: NullPlan,
  decideWith: (tests: RandomTests) => string,
): Promise<RandomTests> {
  const random = createRandom(sample.seed, 'null directions');
  const logits: Parts<number[]> = { steering: [], interchange: [], ablation: [] };
  const untold = { count: 0, of: 0 };
  const { question, most } = plan;
  const level = levelOfQuestion(question);
  let nulls = plan.first;
  while (true) {
    const more = Array.from({ length: nulls - logits.steering.length }, () =>
      randomSubspace(sample.width, sample.subspace.vectors.length, random),
    );
    const drawn = await displaceAtRandom(reader, sample, more);
    for (const name of NAMES) logits[name].push(...drawn[name]);
    untold.count += drawn.untold;
    untold.of += drawn.runs;
    const found = {
      steering: exceedancesOf(effects.steering, logits.steering),
      interchange: exceedancesOf(effects.interchange, logits.interchange),
      ablation: exceedancesOf(effects.ablation, logits.ablation),
    };
    const testsAt = (bound: keyof Exceedance, stable: boolean): RandomTests => ({
      ...adjusted(found, level, bound),
      multiplicity: { question, rate: SIGNIFICANCE, level, spent: spentUpTo(question), nulls, most, stable },
      untoldAtRandom: shareOf(untold.count, untold.of),
    });
    const stable = decideWith(testsAt('low', true)) === decideWith(testsAt('high', true));
    if (stable || nulls >= most) return testsAt('p', stable);
    nulls = Math.min(most, 2 * nulls + 1);
  }
}

type Exceedances = ReturnType<typeof exceedancesOf>;

/** How often random directions do as much as the effect. */
function exceedancesOf({ value, whole }: Untested, logits: readonly number[]) {
  const shares = logits.map((part) => part / whole);
  return { shares, own: exceedance(value, shares, ROUNDING / Math.abs(whole)) };
}

/**
 * In a fixed sequence, each effect only if those before it are significant, which takes nothing from the level; the interchange first, as it needs no dose.
 * So scaled that the bound of adjusted values is the error rate of all questions.
 */
function adjusted(
  found: Parts<Exceedances>,
  level: number,
  bound: keyof Exceedance,
): Parts<Pick<Effect, 'null' | 'p' | 'adjusted'>> {
  let largest = 0;
  const testOf = (name: keyof Parts<unknown>) => {
    const { shares, own } = found[name];
    largest = Math.max(largest, own[bound]);
    return { null: shares, p: own.p, adjusted: Math.min(1, (SIGNIFICANCE / level) * largest) };
  };
  return { interchange: testOf('interchange'), steering: testOf('steering'), ablation: testOf('ablation') };
}

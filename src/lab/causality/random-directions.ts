/** Adds random directions until the states of all three effects are stable, or the most that are allowed are reached. */

import { missing } from '../core/missing.ts';
import { levelOfQuestion, spentUpTo } from '../statistics/alpha-spending.ts';
import { holm } from '../statistics/holm.ts';
import { type Exceedance, exceedance } from '../statistics/null-tail.ts';
import { createRandom } from '../statistics/random.ts';
import { displaceAtRandom, type Parts } from './displacements.ts';
import { stateOf } from './effect-states.ts';
import type { Effect, Evidence } from './evidence.ts';
import type { InterventionSample } from './intervention-sample.ts';
import type { MarginReader } from './logit-margins.ts';
import type { CausalQuestion } from './question.ts';
import { randomSubspace } from './subspace.ts';
import { FINDABLE, SIGNIFICANCE } from './thresholds.ts';

const FIRST = 99;
const MOST = 799;
/** In logits: effects that differ by less are equal within the rounding of float32. */
const ROUNDING = 1e-5;

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
export type Untested = Pick<Effect, 'value' | 'whole' | 'interval'>;

type Tests = Parts<Pick<Effect, 'null' | 'p' | 'adjusted' | 'quarter'>>;

const NAMES = ['steering', 'interchange', 'ablation'] as const;

/** `isSettled`: the verdict follows from other evidence, whatever random directions do. */
export async function testAgainstRandom(
  reader: MarginReader,
  sample: InterventionSample,
  effects: Parts<Untested>,
  plan: NullPlan,
  isSettled: boolean,
): Promise<{ tests: Tests; multiplicity: Evidence['multiplicity']; untold: { count: number; of: number } }> {
  const random = createRandom(sample.seed, 'null directions');
  const logits: Parts<number[]> = { steering: [], interchange: [], ablation: [] };
  const untold = { count: 0, of: 0 };
  const level = levelOfQuestion(plan.question);
  let wanted = plan.first;
  while (true) {
    const more = Array.from({ length: wanted - logits.steering.length }, () =>
      randomSubspace(sample.width, sample.subspace.vectors.length, random),
    );
    const drawn = await displaceAtRandom(reader, sample, more);
    for (const name of NAMES) logits[name].push(...drawn[name]);
    untold.count += drawn.untold;
    untold.of += drawn.runs;
    const { tests, stable } = testAll(effects, logits, level);
    if (stable || isSettled || wanted >= plan.most) {
      const { question, most } = plan;
      const spent = spentUpTo(question);
      return {
        tests,
        multiplicity: { question, rate: SIGNIFICANCE, level, spent, nulls: wanted, most, stable },
        untold,
      };
    }
    wanted = Math.min(plan.most, 2 * wanted + 1);
  }
}

/** Stable: the states are the same with either bound of how often random directions do as much. */
function testAll(effects: Parts<Untested>, logits: Parts<number[]>, level: number): { tests: Tests; stable: boolean } {
  const found = NAMES.map((name) => {
    const { value, whole, interval } = effects[name];
    const shares = logits[name].map((part) => part / whole);
    const rounding = ROUNDING / Math.abs(whole);
    return {
      interval,
      shares,
      own: exceedance(value, shares, rounding),
      quarter: exceedance(FINDABLE, shares, rounding),
    };
  });
  const adjust = (pick: (one: Exceedance) => number) => {
    const scale = SIGNIFICANCE / level;
    const own = holm(found.map((one) => pick(one.own)));
    return found.map((one, i) => ({
      interval: one.interval,
      adjusted: Math.min(1, scale * (own[i] ?? missing('adjusted p of effect', i))),
      quarter: pick(one.quarter),
    }));
  };
  const [best, told, worst] = [adjust(({ low }) => low), adjust(({ p }) => p), adjust(({ high }) => high)];
  const states = (tests: ReturnType<typeof adjust>) => tests.map(stateOf).join(' ');
  const testOf = (i: number) => {
    const one = found[i] ?? missing('test of effect', i);
    const { adjusted, quarter } = told[i] ?? missing('test of effect', i);
    return { null: one.shares, p: one.own.p, adjusted, quarter };
  };
  return {
    tests: { steering: testOf(0), interchange: testOf(1), ablation: testOf(2) },
    stable: states(best) === states(worst),
  };
}

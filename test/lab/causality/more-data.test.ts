import { beforeAll, describe, expect, test } from 'vitest';
import { decide } from '../../../src/lab/causality/decide.ts';
import { naturalMargins, shareIn } from '../../../src/lab/causality/effects.ts';
import type { Evidence } from '../../../src/lab/causality/evidence.ts';
import type { InterventionSample } from '../../../src/lab/causality/intervention-sample.ts';
import type { Margins } from '../../../src/lab/causality/logit-margins.ts';
import { lineAlong } from '../../../src/lab/causality/subspace.ts';
import { createRandom, type Random } from '../../../src/lab/statistics/random.ts';
import { answer } from './questions.ts';

const SIZES = [12, 48, 192];
const DRAWS = 20;

let template: Evidence;

beforeAll(async () => {
  template = (await answer()).evidence;
});

/** Pairs of prompts whose margins are 1 and -1. */
function pairsOf(count: number, seed: number): { sample: InterventionSample; base: Margins } {
  const rows = Array.from({ length: 2 * count }, (_, i) => i);
  const sample: InterventionSample = {
    site: template.site,
    seed,
    width: 1,
    labels: rows.map((row) => (row % 2 === 0 ? 1 : 0)),
    classes: 2,
    clusters: [Array.from({ length: count }, (_, pair) => [2 * pair, 2 * pair + 1])],
    activations: [],
    partners: rows.map((row) => row ^ 1),
    subspace: lineAlong(Float32Array.of(1)),
  };
  const half = (sign: number) => Float64Array.from(rows, (row) => (row % 2 === 0 ? sign : -sign) / 2);
  const base = { classes: [half(-1), half(1)], control: half(0), scale: Float64Array.from(rows, () => 1) };
  return { sample, base };
}

/** The verdict on prompts that each show an effect of this size, more or less. */
function verdictWith(size: number, spread: number, count: number, random: Random, seed: number): string {
  const { sample, base } = pairsOf(count, seed);
  const { own, between } = naturalMargins(base, sample);
  const effect = (natural: typeof own) => {
    const parts = own.margins.map(() => (size + spread * random.normal()) * (natural === own ? 1 : 2));
    const found = shareIn(sample, 'drawn', parts, natural);
    return { ...found, null: [], p: 0.001, adjusted: Math.abs(found.value) > 0.05 ? 0.01 : 1 };
  };
  const evidence: Evidence = {
    ...template,
    steering: { ...template.steering, ...effect(own) },
    interchange: { ...template.interchange, ...effect(between) },
    ablation: { ...template.ablation, ...effect(own) },
    sweep: { ...template.sweep, change: 0.3, commonScale: 0.9 },
  };
  const { verdict, reason } = decide(evidence);
  return verdict === 'undetermined' ? reason : verdict;
}

describe('more pairs of prompts', () => {
  test.each([
    ['weak-causal', 0.3, 0.9],
    ['epiphenomenal-softmax', 0, 0.35],
    ['causal', 0.9, 0.9],
  ])('move underpowered to the right verdict and to no other beyond the stated error: %s', (expected, size, spread) => {
    const random = createRandom(1, expected);
    const right = SIZES.map((count) => {
      const found = Array.from({ length: DRAWS }, (_, draw) => verdictWith(size, spread, count, random, draw));
      const wrong = found.filter((verdict) => verdict !== expected && verdict !== 'underpowered');
      // Three effects, of which each is beyond its interval one time in twenty at most.
      if (expected !== 'causal')
        expect(wrong.length, `${count}: ${wrong.join(', ')}`).toBeLessThanOrEqual(0.15 * DRAWS);
      return found.filter((verdict) => verdict === expected).length;
    });
    expect(right[0]).toBeLessThan(DRAWS);
    expect(right.at(-1)).toBeGreaterThanOrEqual(0.9 * DRAWS);
    expect(right).toEqual(right.toSorted((a, b) => a - b));
  });
});

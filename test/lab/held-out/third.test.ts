/** Checks by interventions of its own that the families of the third held-out set behave as they say. */

import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { missing } from '../../../src/lab/core/missing.ts';
import { allOnCi } from '../../sample.ts';
import type { Family, Made } from './family.ts';
import { expected, type Range } from './third/expected.ts';
import { thirdFamilies } from './third/index.ts';
import { type Measures, measure } from './third/measure.ts';
import { forgetTrained } from './third/trained/tasks.ts';

const SEEDS = [1, 2];
/** How many families are looked at where somebody waits. */
const FEW = 4;
const MOST_BYTES = 2_000_000;

describe('the third held-out set', () => {
  test('has enough families of every verdict, with names and reasons of their own', () => {
    const names = thirdFamilies.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    expect(names.length).toBeGreaterThanOrEqual(36);
    expect(names.length).toBeLessThanOrEqual(44);
    const counts = new Map<string, number>();
    for (const { truth } of thirdFamilies) counts.set(truth.verdict, (counts.get(truth.verdict) ?? 0) + 1);
    expect([...counts.keys()].sort()).toEqual([
      'causal',
      'epiphenomenal-softmax',
      'epiphenomenal-template',
      'undetermined',
      'weak-causal',
    ]);
    for (const count of counts.values()) expect(count).toBeGreaterThanOrEqual(5);
    expect(names.filter((name) => name.startsWith('trained-')).length).toBeGreaterThanOrEqual(5);
    expect(Object.keys(expected).sort()).toEqual([...names].sort());
    for (const { why } of thirdFamilies) expect(why).toMatch(/^[A-Z][^.]*\.$/);
  });

  test('trains the same model for the same seed again', () => {
    const trained = allOnCi(
      thirdFamilies.filter(({ name }) => name.startsWith('trained-')),
      1,
    );
    const before = trained.map((family) => hashOf(family.make(1)));
    forgetTrained();
    expect(trained.map((family) => hashOf(family.make(1)))).toEqual(before);
  });

  describe.each(allOnCi(thirdFamilies, FEW))('the family $name of the third held-out set', (family) => {
    test.each(SEEDS)('behaves as it says with seed %i', (seed) => check(family, seed));

    test('is the same for the same seed, and another for another', () => {
      const hashes = [1, 1, 2].map((seed) => hashOf(family.make(seed)));
      expect(hashes[1]).toBe(hashes[0]);
      expect(hashes[2]).not.toBe(hashes[0]);
    });
  });
});

async function check(family: Family, seed: number): Promise<void> {
  const made = family.make(seed);
  const { dataset, direction } = made.question;
  for (const label of [1, 0] as const)
    expect(dataset.filter((one) => one.label === label).length).toBeGreaterThanOrEqual(12);
  expect(made.files['model.safetensors']?.length).toBeLessThan(MOST_BYTES);
  if (direction !== 'fit') expect(Math.hypot(...direction)).toBeCloseTo(1, 4);
  const measures = await measure(made);
  expect(measures.unknown).toEqual([]);
  const ranges = expected[family.name] ?? missing('ranges of', family.name);
  expect(outside(measures, ranges)).toEqual([]);
}

/** What does not lie where it should. */
function outside(measures: Measures, ranges: Partial<Record<keyof Measures, Range>>): string[] {
  const wrong: string[] = [];
  for (const [name, value] of Object.entries(measures)) {
    const range = Object.entries(ranges).find(([key]) => key === name)?.[1];
    if (!range || typeof value !== 'number') continue;
    const [low, high] = range;
    if (!(value >= low && value <= high)) wrong.push(`${name} is ${value.toPrecision(3)}, not ${low} to ${high}`);
  }
  return wrong;
}

function hashOf({ files, question }: Made): string {
  const hash = createHash('sha256');
  for (const name of Object.keys(files).sort()) hash.update(name).update(files[name] ?? missing('file', name));
  return hash.update(JSON.stringify(question)).digest('hex');
}

import { describe, expect, test } from 'vitest';
import { allOnCi } from '../../sample.ts';
import type { Verdict } from './family.ts';
import { firstFamilies } from './first/index.ts';
import { type Measured, measure } from './measure.ts';
import { PLAIN_WORDS } from './vocabulary.ts';

type Ranges = Partial<Record<keyof Measured, [least: number, most: number]>>;

const NOTHING: [number, number] = [-0.06, 0.06];
const CHANCE: [number, number] = [0.25, 0.75];

/** What all families of a verdict have in common. */
const BY_VERDICT: Record<Verdict, Ranges> = {
  causal: { gap: [0.5, 20], marginOrder: [0.85, 1], siteOrder: [0.8, 1], removed: [0.85, 1.15], moved: [0.85, 1.15] },
  'weak-causal': {
    gap: [2, 9],
    marginOrder: [0.95, 1],
    siteOrder: [0.8, 1],
    removed: [-0.8, 0.65],
    moved: [-0.8, 0.65],
  },
  'epiphenomenal-softmax': {
    gap: [0.5, 3],
    marginOrder: [0.7, 1],
    siteOrder: [0.95, 1],
    moved: [0.8, 1.2],
    notScaling: [0, 0.15],
  },
  'epiphenomenal-template': {
    gap: [0.5, 20],
    marginOrder: [0.8, 1],
    siteOrder: [0.7, 1],
    removed: NOTHING,
    moved: NOTHING,
  },
  undetermined: {},
};

/** What a family has besides. */
const BY_FAMILY: Record<string, Ranges> = {
  'partial-mediator-40': { removed: [0.3, 0.5], moved: [0.3, 0.5] },
  'bypassed-half': { removed: [0.3, 0.5], moved: [0.3, 0.5], movedBySite: [0.3, 0.5] },
  'either-suffices': { removed: [-0.1, 0.1], moved: [0.25, 0.65], movedBySite: [0.95, 1.05] },
  'dormant-pathway': { removed: [0.35, 0.6], moved: [0.35, 0.6] },
  'against-its-label': { removed: [-0.8, -0.4], moved: [-0.8, -0.4] },
  'tilted-correlate': { removed: [0.25, 0.48], moved: [0.25, 0.48] },
  'half-of-a-plane': { removed: [0.35, 0.6], moved: [0.35, 0.6] },
  'one-template-only': { removed: [0.35, 0.6], moved: [0.35, 0.6], movedBySite: [0.35, 0.6] },
  'unpaired-mediator-25': { removed: [0.15, 0.35], moved: [0.15, 0.35] },
  // Unpaired prompts of one label may have stronger endings by chance.
  'ballast-on-uneven-answers': { moved: [0.6, 1.5] },
  'dead-content-word': { movedBySite: NOTHING },
  'opening-word': { movedBySite: NOTHING },
  'opening-word-mostly': { movedBySite: NOTHING },
  'unread-copy-at-the-end': { movedBySite: NOTHING },
  'inert-correlate': { movedBySite: [0.95, 1.05] },
  'already-read': { movedBySite: [0.95, 1.05] },
  'trained-dead-word': { movedBySite: NOTHING },
  'shuffled-labels': { gap: [-1, 1], marginOrder: CHANCE, siteOrder: CHANCE },
  'before-the-copy': { gap: [2, 9], marginOrder: [0.95, 1], siteOrder: CHANCE, movedBySite: NOTHING },
  'flat-behaviour': { gap: [-0.3, 0.3], marginOrder: CHANCE, siteOrder: [0.95, 1] },
  'either-or-with-opening': { gap: [2, 9], marginOrder: [0.95, 1], siteOrder: CHANCE },
  'same-on-both-sides': { gap: [-0.5, 0.5], marginOrder: CHANCE, siteOrder: [0.1, 0.9] },
  'random-weights': { marginOrder: CHANCE, siteOrder: CHANCE },
};

const SEEDS = [1, 2];
/** How many families are looked at where somebody waits. */
const FEW = 4;

describe.each(allOnCi(firstFamilies, FEW))('the family $name of the first held-out set', ({ name, truth, make }) => {
  test.each(SEEDS)('behaves as its construction says, for seed %i', async (seed) => {
    const measured = await measure(make(seed));
    for (const [quantity, [least, most]] of Object.entries({ ...BY_VERDICT[truth.verdict], ...BY_FAMILY[name] })) {
      const value = Object.entries(measured).find(([key]) => key === quantity)?.[1];
      expect(value, quantity).toBeGreaterThanOrEqual(least);
      expect(value, quantity).toBeLessThanOrEqual(most);
    }
    expect(measured.spread).toBeGreaterThan(0.8);
    expect(measured.spread).toBeLessThan(3);
  });

  test('asks with enough examples of single tokens, and makes the same model from the same seed', () => {
    const first = make(3);
    const second = make(3);
    const { dataset, target, direction } = first.question;
    const weights = first.files['model.safetensors'];
    expect(second.question).toEqual(first.question);
    expect(Buffer.from(second.files['model.safetensors'] ?? '').equals(Buffer.from(weights ?? ''))).toBe(true);
    expect(weights?.length).toBeLessThan(2_000_000);
    for (const label of [0, 1]) expect(dataset.filter((one) => one.label === label).length).toBeGreaterThanOrEqual(12);
    const vocabulary = new Set(Object.keys(JSON.parse(String(first.files['tokenizer.json'])).model.vocab));
    const words = [...dataset.flatMap(({ prompt }) => prompt.split(' ')), ...target.positive, ...target.negative];
    expect([...words, ...PLAIN_WORDS].filter((word) => !vocabulary.has(word))).toEqual([]);
    if (direction !== 'fit') expect(Math.max(...direction.map(Math.abs))).toBeLessThan(0.6);
  });
});

test('families of the first held-out set have names of their own and cover every verdict', () => {
  expect(new Set(firstFamilies.map(({ name }) => name)).size).toBe(firstFamilies.length);
  expect(new Set(firstFamilies.map(({ truth }) => truth.verdict))).toEqual(new Set(Object.keys(BY_VERDICT)));
});

import { describe, expect, test } from 'vitest';
import { missing } from '../../../src/lab/core/missing.ts';
import { allOnCi } from '../../sample.ts';
import type { Made, ModelFolder, Verdict } from './family.ts';
import { type Measured, measure } from './measure.ts';
import { secondFamilies } from './second/index.ts';
import { learnTask } from './second/trained/learn-task.ts';
import { sorting, voting } from './second/trained/tasks.ts';
import { PLAIN_WORDS } from './vocabulary.ts';

type Ranges = Partial<Record<keyof Measured, [least: number, most: number]>>;

const NOTHING: [number, number] = [-0.05, 0.05];
const ALL: [number, number] = [0.95, 1.05];
const CHANCE: [number, number] = [0.35, 0.65];
const CLEAR: [number, number] = [0.8, 1];

/** What all families of a verdict have in common. */
const BY_VERDICT: Record<Verdict, Ranges> = {
  causal: { gap: [0.45, 40], marginOrder: CLEAR, siteOrder: CLEAR, removed: [0.85, 1.15], moved: [0.85, 1.15] },
  'weak-causal': { gap: [2, 30], marginOrder: CLEAR, siteOrder: CLEAR, removed: [0.1, 0.42], moved: [0.1, 0.42] },
  'epiphenomenal-softmax': {
    gap: [1, 8],
    marginOrder: CLEAR,
    siteOrder: CLEAR,
    movedBySite: [0.9, 1.1],
    pushed: [0.2, 0.6],
    pushedNotScaling: [0, 0.03],
  },
  'epiphenomenal-template': {
    gap: [1, 20],
    marginOrder: CLEAR,
    siteOrder: CLEAR,
    removed: NOTHING,
    moved: NOTHING,
    movedBySite: NOTHING,
    pushed: [0, 0.001],
  },
  undetermined: {},
};

const NO_BEHAVIOUR: Ranges = { gap: NOTHING, siteOrder: CLEAR };
const NOT_AT_THE_SITE: Ranges = { gap: [2, 20], marginOrder: CLEAR, siteOrder: CHANCE, movedBySite: NOTHING };

/** What a family has besides, or instead. */
const BY_FAMILY: Record<string, Ranges> = {
  'loud-reader': { gap: [25, 40] },
  'whispered-answer': { gap: [0.45, 0.7], targetsWin: [0, 0] },
  'stand-in-past-the-site': { removed: NOTHING, moved: [0.08, 0.42] },
  'level-brake': { removed: [-0.65, -0.3], moved: [-0.65, -0.3] },
  'beyond-nature': { removed: NOTHING, moved: NOTHING, pushedMargin: [0.7, 1.5] },
  'ballast-out-of-a-unit': { moved: [0.9, 1.1] },
  'ballast-under-several-answers': { moved: [0.9, 1.1] },
  'spent-concept': { moved: NOTHING },
  'correlate-beside-the-answer': { moved: NOTHING, targetsWin: [0, 0.05] },
  'along-the-level': { movedBySite: ALL },
  'another-choice': { ...NO_BEHAVIOUR, targetsWin: [0, 0.1] },
  'readers-that-cancel': NO_BEHAVIOUR,
  'half-exchanged': { gap: NOTHING, marginOrder: CHANCE, siteOrder: [0.3, 0.65] },
  'before-the-word': NOT_AT_THE_SITE,
  'random-llama': { gap: [-0.6, 0.6], marginOrder: CHANCE, siteOrder: CHANCE },
  'trained-sorting-before-it-is-told': NOT_AT_THE_SITE,
};

const SEEDS = [1, 2];
/** How many families are looked at where somebody waits. */
const FEW = 4;

describe.each(allOnCi(secondFamilies, FEW))(
  'the family $name of the second held-out set',
  ({ name, truth, why, make }) => {
    const known = new Map<number, Made>();
    const made = (seed: number) => {
      const one = known.get(seed) ?? make(seed);
      known.set(seed, one);
      return one;
    };

    test.each(SEEDS)('behaves as its construction says, for seed %i', async (seed) => {
      const measured = await measure(made(seed));
      for (const [quantity, [least, most]] of Object.entries({ ...BY_VERDICT[truth.verdict], ...BY_FAMILY[name] })) {
        const value = Object.entries(measured).find(([key]) => key === quantity)?.[1];
        expect(value, quantity).toBeGreaterThanOrEqual(least);
        expect(value, quantity).toBeLessThanOrEqual(most);
      }
      expect(measured.spread).toBeGreaterThan(0.8);
      expect(measured.spread).toBeLessThan(3);
    });

    test('asks with enough examples of single tokens, and gives one sentence as its reason', () => {
      const { files, question } = made(1);
      const { dataset, target, direction } = question;
      expect(weightsOf(files).length).toBeLessThan(2_000_000);
      for (const label of [0, 1])
        expect(dataset.filter((one) => one.label === label).length).toBeGreaterThanOrEqual(12);
      const vocabulary = new Set(Object.keys(JSON.parse(String(files['tokenizer.json'])).model.vocab));
      const words = [...dataset.flatMap(({ prompt }) => prompt.split(' ')), ...target.positive, ...target.negative];
      expect([...words, ...PLAIN_WORDS].filter((word) => !vocabulary.has(word))).toEqual([]);
      if (direction !== 'fit') expect(Math.max(...direction.map(Math.abs))).toBeLessThan(0.6);
      expect(why).toMatch(/^[A-Z][^.]*(\d\.\d[^.]*)?\.$/);
    });

    test('makes the same model and question from the same seed', () => {
      const again = make(1);
      expect(again.question).toEqual(made(1).question);
      expect(weightsOf(again.files).equals(weightsOf(made(1).files))).toBe(true);
    });
  },
);

test.each([sorting, voting])('training to the task $name gives the same model from the same seed', (task) => {
  const short = { ...task, steps: 5 };
  const trained = (seed: number) => weightsOf(learnTask(short, seed).files);
  expect(trained(1).equals(trained(1))).toBe(true);
  expect(trained(2).equals(trained(1))).toBe(false);
});

test('families of the second held-out set have names of their own and cover every verdict', () => {
  expect(new Set(secondFamilies.map(({ name }) => name)).size).toBe(secondFamilies.length);
  expect(new Set(secondFamilies.map(({ truth }) => truth.verdict))).toEqual(new Set(Object.keys(BY_VERDICT)));
});

function weightsOf(files: ModelFolder): Buffer {
  return Buffer.from(files['model.safetensors'] ?? missing('weights'));
}

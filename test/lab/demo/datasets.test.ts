import { describe, expect, it } from 'vitest';
import type { DatasetRow } from '../../../src/lab/causality/question.ts';
import {
  agreementPairs,
  attractedPairs,
  confoundedPairs,
  feelingPairs,
  flagPairs,
  inventedPairs,
  neutralPrompts,
  reviewPairs,
} from '../../../src/lab/demo/datasets.ts';
import { demoQuestions } from '../../../src/lab/demo/questions.ts';
import { BLAME, PRAISE } from '../../../src/lab/demo/vocabulary.ts';

/** Places of the words in which the prompts of each pair differ: the place, and both words. */
function differences(rows: DatasetRow[]) {
  return [...new Set(rows.map((row) => row.pair))].map((name) => {
    const pair = rows.filter((row) => row.pair === name);
    const [one, zero] = [1, 0].map((label) => pair.find((row) => row.label === label)?.prompt.split(' ') ?? []);
    expect(pair).toHaveLength(2);
    expect(one?.length).toBe(zero?.length);
    return (one ?? []).flatMap((word, place) =>
      word === zero?.[place] ? [] : [{ place, one: word, zero: zero?.[place] }],
    );
  });
}

const MAKERS = {
  agreementPairs,
  attractedPairs,
  inventedPairs,
  feelingPairs,
  confoundedPairs,
  flagPairs,
  reviewPairs,
};

describe.each(Object.entries(MAKERS))('the dataset %s', (_, make) => {
  it('is balanced, has no prompt twice, and is the same for the same seed', () => {
    const rows = make(11, 40);
    expect(rows).toHaveLength(80);
    expect(rows.filter((row) => row.label === 1)).toHaveLength(40);
    expect(new Set(rows.map((row) => row.prompt)).size).toBe(80);
    expect(make(11, 40)).toEqual(rows);
    expect(make(12, 40)).not.toEqual(rows);
  });
});

describe('pairs of prompts', () => {
  it('of agreement differ in the subject only', () => {
    for (const changes of differences(agreementPairs(1, 60))) expect(changes.map(({ place }) => place)).toEqual([3]);
  });

  it('of attraction differ in the subject and, the other way round, in the noun after it', () => {
    for (const changes of differences(attractedPairs(1, 60))) expect(changes.map(({ place }) => place)).toEqual([3, 6]);
  });

  it('of invented nouns differ by an s', () => {
    for (const [change] of differences(inventedPairs(1, 60))) expect(change?.one).toBe(`${change?.zero}s`);
  });

  it('of feeling differ in praise and blame only', () => {
    for (const changes of differences(feelingPairs(1, 60))) {
      expect(changes).toHaveLength(1);
      expect(PRAISE).toContain(changes[0]?.one);
      expect(BLAME).toContain(changes[0]?.zero);
    }
  });

  it('of feeling have subjects of either number, and the confounded ones of one number for each feeling', () => {
    const plural = (row: DatasetRow) => /^\S+ The \w+ (\w+s|children|men|women) /.test(row.prompt);
    const shares = (rows: DatasetRow[]) =>
      [0, 1].map((label) => {
        const some = rows.filter((row) => row.label === label);
        return some.filter(plural).length / some.length;
      });
    const [blamed, praised] = shares(feelingPairs(1, 60));
    expect(blamed).toBe(praised);
    expect(blamed).toBeGreaterThan(0.3);
    expect(blamed).toBeLessThan(0.7);
    expect(shares(confoundedPairs(1, 60))).toEqual([0, 1]);
  });

  it('of text kinds differ in the first word only', () => {
    for (const changes of differences(flagPairs(1, 60))) {
      expect(changes).toEqual([{ place: 0, one: 'Report:', zero: 'Story:' }]);
    }
  });

  it('of reviews differ in both opinions only', () => {
    for (const changes of differences(reviewPairs(1, 60))) {
      expect(changes.map(({ one }) => PRAISE.includes(one.replace('.', '')))).toEqual([true, true]);
    }
  });
});

describe('the questions of the demo', () => {
  it('are tested on prompts that their probes were not trained on', () => {
    for (const { training, dataset } of demoQuestions(5)) {
      const prompts = new Set(training.map((row) => row.prompt));
      expect(dataset.filter((row) => prompts.has(row.prompt))).toEqual([]);
      expect(training.length).toBeGreaterThan(60);
      expect(dataset.filter((row) => row.label === 0).length).toBeGreaterThanOrEqual(12);
      expect(dataset.filter((row) => row.label === 1).length).toBeGreaterThanOrEqual(12);
    }
  });

  it('have neutral text in which no verb depends on a noun', () => {
    const prompts = neutralPrompts(5, 24);
    expect(prompts).toHaveLength(24);
    expect(prompts.filter((prompt) => / (is|are|was|were) /.test(prompt))).toEqual([]);
  });
});

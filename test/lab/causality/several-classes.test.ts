import { describe, expect, test } from 'vitest';
import { decide } from '../../../src/lab/causality/decide.ts';
import { evidenceSchema } from '../../../src/lab/causality/evidence.ts';
import { runProtocol } from '../../../src/lab/causality/protocol.ts';
import type { CausalQuestion, DatasetRow } from '../../../src/lab/causality/question.ts';
import { createRandom } from '../../../src/lab/statistics/random.ts';
import { context } from './questions.ts';
import { axisOf, createStructured } from './structured-engine.ts';
import { classesOnPlane } from './structures.ts';

const UNREAD = { kind: 'given' as const, vector: axisOf('u'), others: [axisOf('v')] };

async function askPlane(classes: number, changes: Partial<CausalQuestion> = {}, groups = 24) {
  const model = createStructured(classesOnPlane(classes));
  const question = model.question(model.rows(groups, 1), changes);
  const evidence = await runProtocol(model.engine, question, context());
  return { evidence, verdict: decide(evidence), question };
}

describe('more than two classes', () => {
  test.each([3, 4])('%d on a plane that the answer is read from are causal', async (classes) => {
    const { evidence, verdict } = await askPlane(classes);
    expect(verdict).toMatchObject({ verdict: 'causal', reason: 'sufficient-and-necessary' });
    expect(evidence.direction.basis?.length).toBeGreaterThanOrEqual(2);
    expect(evidence.direction.basis?.length).toBeLessThan(classes);
    for (const effect of [evidence.steering, evidence.interchange, evidence.ablation]) {
      expect(effect.value).toBeGreaterThan(0.8);
      expect(effect.value).toBeLessThan(1.2);
    }
    expect(evidence.decodability.between).toHaveLength((classes * (classes - 1)) / 2);
    expect(evidence.interchange.answerFlips.rate).toBeGreaterThan(0.9);
    expect(evidenceSchema.parse(JSON.parse(JSON.stringify(evidence)))).toEqual(evidence);
  });

  test('that are told by a plane which nothing is read from are not causal', async () => {
    const { evidence, verdict } = await askPlane(3, { direction: UNREAD });
    expect(evidence.decodability.auroc).toBeGreaterThan(0.95);
    expect(Math.abs(evidence.interchange.value)).toBeLessThan(0.1);
    expect(verdict.verdict).toMatch(/^epiphenomenal/);
  });

  test('are not decodable where labels are given at random', async () => {
    const model = createStructured(classesOnPlane(3));
    for (const seed of [1, 2, 3]) {
      const random = createRandom(seed, 'random classes');
      const dataset = model
        .rows(24, seed)
        .map(({ pair: _, ...row }): DatasetRow => ({ ...row, label: random.integer(3) }));
      const evidence = await runProtocol(model.engine, model.question(dataset, { seed }), context());
      expect(decide(evidence)).toMatchObject({ verdict: 'undetermined', reason: 'not-decodable' });
      expect(evidence.decodability.permutation.refitted).toBe(true);
    }
  });

  test('along one line of their plane are partly moved by it', async () => {
    const { evidence, verdict } = await askPlane(3, { direction: { kind: 'given', vector: axisOf('x') } });
    expect(evidence.split.by).toBe('pair');
    expect(evidence.interchange.value).toBeLessThan(0.8);
    expect(verdict.verdict).toBe('weak-causal');
  });

  test('have words found for each of them in the discovery half', async () => {
    const { evidence } = await askPlane(3, { target: undefined });
    const { negative, positive, others } = evidence.target;
    expect([negative, positive, ...(others ?? [])].flat().map(({ text }) => text)).toEqual([
      'answer0',
      'answer1',
      'answer2',
    ]);
    expect(evidence.target.chosen).toBe('discovery');
  });

  test('give the same effects however they are numbered', async () => {
    const { evidence: first, question } = await askPlane(3);
    const model = createStructured(classesOnPlane(3));
    const dataset = question.dataset.map((row) => ({ ...row, label: (row.label + 1) % 3 }));
    const target = { negative: ['answer2'], positive: ['answer0'], others: [['answer1']] };
    const turned = await runProtocol(model.engine, model.question(dataset, { target }), context());
    for (const effect of ['steering', 'interchange', 'ablation'] as const)
      expect(turned[effect].value).toBeCloseTo(first[effect].value, 5);
    expect(turned.decodability.auroc).toBeCloseTo(first.decodability.auroc, 6);
    expect(turned.behaviour.gap).toBeCloseTo(first.behaviour.gap, 6);
  });

  test('show the first prompts of each', async () => {
    const { evidence, question } = await askPlane(3);
    expect(evidence.examples.map(({ row }) => question.dataset[row]?.label)).toEqual([2, 2, 2, 1, 1, 1, 0, 0, 0]);
    for (const { row, partner, before, component } of evidence.examples) {
      expect(before.text).toBe(`answer${question.dataset[row]?.label}`);
      expect(component.text).toBe(`answer${question.dataset[partner]?.label}`);
    }
  });

  test('are told by names, with how many rows each has', async () => {
    const { evidence, verdict } = await askPlane(3, { classes: ['fig', 'pear', 'plum'] });
    expect(evidence.data.classes).toEqual(['fig', 'pear', 'plum'].map((name) => ({ name, rows: 24 })));
    expect(verdict.limits[0]).toContain('"answer0", "answer1" and "answer2"');
  });

  test.each<[string, Partial<CausalQuestion>, number, RegExp]>([
    [
      'a class without target words',
      { target: { positive: ['answer1'], negative: ['answer0'] } },
      24,
      /no target words for the class 2\b/,
    ],
    [
      'a word of two classes',
      { target: { positive: ['answer1'], negative: ['answer0'], others: [['answer1']] } },
      24,
      /"answer1" is of class .* and of class/,
    ],
    ['fewer than 12 rows in a class', {}, 11, /11 of class 0, 11 of class 1, 11 of class 2.* at least 12/],
    [
      'a logistic regression',
      { direction: { kind: 'fit', method: 'logistic' } },
      24,
      /between two classes.*there are 3/,
    ],
    [
      'a structure-matched set of two of them',
      { structureMatched: createStructured(classesOnPlane(2)).rows(12, 1) },
      24,
      /has 2 classes, and the dataset 3/,
    ],
  ])('are refused with %s', async (_, changes, groups, message) => {
    await expect(askPlane(3, changes, groups)).rejects.toThrow(message);
  });
});

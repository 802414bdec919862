import { describe, expect, test } from 'vitest';
import { decide } from '../../../src/lab/causality/decide.ts';
import { runProtocol } from '../../../src/lab/causality/protocol.ts';
import type { CausalQuestion, DatasetRow } from '../../../src/lab/causality/question.ts';
import { runSweep } from '../../../src/lab/site-sweep/run-sweep.ts';
import { createRandom } from '../../../src/lab/statistics/random.ts';
import { context } from './questions.ts';
import { axisOf, createStructured, type Structure } from './structured-engine.ts';
import { classesOnPlane, DORMANT, EITHER_AXIS } from './structures.ts';

const fitted = (rank?: number) => ({
  direction: { kind: 'fit' as const, method: 'interchange' as const, ...(rank !== undefined && { rank }) },
});

async function askAbout(structure: Structure, changes: Partial<CausalQuestion>, groups = 40, seed = 1) {
  const model = createStructured(structure, seed);
  const evidence = await runProtocol(
    model.engine,
    model.question(model.rows(groups, seed), { seed, ...changes }),
    context(),
  );
  return { evidence, verdict: decide(evidence) };
}

/** The share of an axis that lies in the fitted subspace. */
function shareOf(axis: number[], basis: readonly (readonly number[])[]): number {
  const product = (vector: readonly number[]) =>
    vector.reduce((sum, value, i) => sum + value * (axis[i] ?? Number.NaN), 0);
  return basis.reduce((sum, vector) => sum + product(vector) ** 2, 0);
}

describe('a subspace that is fitted on interchange', () => {
  test('of rank 2 is causal where the concept is read from either of two axes, of which the line between the class means is a part', async () => {
    const line = await askAbout(EITHER_AXIS, {});
    expect(line.evidence.decodability.auroc).toBeGreaterThan(0.95);
    expect(line.evidence.interchange.value).toBeLessThan(0.45);
    expect(line.verdict.verdict).toBe('weak-causal');
    const plane = await askAbout(EITHER_AXIS, fitted(2));
    expect(plane.evidence.interchange.value).toBeGreaterThan(0.9);
    expect(plane.verdict).toMatchObject({ verdict: 'causal', reason: 'sufficient-and-necessary' });
    const basis = plane.evidence.direction.basis ?? [];
    expect(shareOf(axisOf('x'), basis)).toBeGreaterThan(0.9);
    expect(shareOf(axisOf('y'), basis)).toBeGreaterThan(0.9);
    expect(plane.evidence.direction).toMatchObject({ kind: 'fit', method: 'interchange' });
    expect(plane.evidence.direction.search?.recovered).toBeGreaterThan(0.9);
    expect(plane.evidence.decodability.permutation.refitted).toBe(false);
  });

  test.each([3, 4])(
    'finds the plane that %d classes are read from beside one that only tells them',
    async (classes) => {
      const { evidence, verdict } = await askAbout(classesOnPlane(classes), fitted(2), 24);
      expect(verdict).toMatchObject({ verdict: 'causal' });
      expect(shareOf(axisOf('x'), evidence.direction.basis ?? [])).toBeGreaterThan(0.8);
      expect(shareOf(axisOf('u'), evidence.direction.basis ?? [])).toBeLessThan(0.2);
    },
  );

  test('is one line by default where there are two classes', async () => {
    const { evidence, verdict } = await askAbout(classesOnPlane(2), fitted());
    expect(evidence.direction.basis).toBeUndefined();
    expect(shareOf(axisOf('x'), [evidence.direction.vector])).toBeGreaterThan(0.8);
    expect(verdict.verdict).toBe('causal');
  });

  test('is found in nothing but the discovery half', async () => {
    const model = createStructured(EITHER_AXIS);
    const rows = model.rows(40, 1);
    const { evidence: first } = await askAbout(EITHER_AXIS, fitted(2));
    const test = new Set(first.split.test);
    const exchanged = rows.map((row, index): DatasetRow => {
      const other = model.rows(40, 2)[index];
      return test.has(index) && other ? { ...row, prompt: other.prompt } : row;
    });
    const second = await runProtocol(model.engine, model.question(exchanged, { seed: 1, ...fitted(2) }), context());
    expect(second.split).toEqual(first.split);
    expect(second.direction.basis).toEqual(first.direction.basis);
  });

  test.each([1, 2, 3, 4])('is never causal where labels are given at random: seed %d', async (seed) => {
    const model = createStructured(EITHER_AXIS, seed);
    const random = createRandom(seed, 'random labels');
    const dataset = model
      .rows(24, seed)
      .map(({ pair: _, ...row }): DatasetRow => ({ ...row, label: random.integer(2) }));
    const evidence = await runProtocol(model.engine, model.question(dataset, { seed, ...fitted(2) }), context());
    expect(decide(evidence).verdict).toBe('undetermined');
  });

  test.each([1, 2, 3])('does not take a pathway that is dormant in the data for a cause: seed %d', async (seed) => {
    const { evidence, verdict } = await askAbout(DORMANT, { ...fitted(1), nulls: 99 }, 32, seed);
    expect(evidence.decodability.auroc).toBeGreaterThan(0.95);
    expect(evidence.interchange.value).toBeGreaterThan(0.4);
    expect(Math.abs(evidence.interchange.full.value)).toBeLessThan(0.1);
    expect(verdict.verdict).not.toBe('causal');
  });

  test('is refused where its rank is larger than rows differ by', async () => {
    await expect(askAbout(EITHER_AXIS, fitted(60))).rejects.toThrow(/rank 60 cannot be fitted.*rank \d+ at most/);
  });

  test('stops when its signal is aborted', async () => {
    const model = createStructured(EITHER_AXIS);
    const controller = new AbortController();
    const onProgress = (done: number) => done > 1500 && controller.abort(new Error('Enough.'));
    const question = model.question(model.rows(40, 1), fitted(2));
    await expect(
      runProtocol(model.engine, question, context({ signal: controller.signal, onProgress })),
    ).rejects.toThrow('Enough.');
  });

  test('is a direction of a sweep like any other', async () => {
    const model = createStructured(EITHER_AXIS);
    const { site, dataset, target, seed } = model.question(model.rows(40, 1));
    const directions = [
      { name: 'line', direction: { kind: 'fit' as const, method: 'difference-of-means' as const } },
      { name: 'plane', ...fitted(2) },
    ];
    const evidence = await runSweep(model.engine, { sites: [site], directions, dataset, target, seed }, context());
    const [line, plane] = evidence.cells;
    expect(plane?.rank).toBe(2);
    expect(plane?.component.value).toBeGreaterThan(2 * (line?.component.value ?? Number.NaN));
  });
});

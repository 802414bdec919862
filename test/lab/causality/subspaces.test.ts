import { describe, expect, test } from 'vitest';
import { decide } from '../../../src/lab/causality/decide.ts';
import { runProtocol } from '../../../src/lab/causality/protocol.ts';
import { cellState } from '../../../src/lab/site-sweep/conclude.ts';
import { runSweep } from '../../../src/lab/site-sweep/run-sweep.ts';
import { axis, createPlainEngine, plainPairs } from './plain-engine.ts';
import { ask, context } from './questions.ts';

/** Along an axis that means nothing. */
const IDLE = axis('concept').map((_, i) => (i === 50 ? 1 : 0));
const sum = (a: number[], b: number[], factor: number) => a.map((value, i) => value + factor * (b[i] ?? Number.NaN));

/** The answer is read from two axes alike. */
async function askTwofold(vector: number[], others?: number[][]) {
  const direction = { kind: 'given' as const, vector, ...(others && { others }) };
  const question = ask({ dataset: plainPairs(32), direction });
  const evidence = await runProtocol(createPlainEngine({ second: 1 }), question, context());
  return { evidence, verdict: decide(evidence) };
}

describe('a subspace of two dimensions', () => {
  test('is causal where the answer is read from both, of which either alone is a part', async () => {
    const [line, plane, idle] = [
      await askTwofold(axis('concept')),
      await askTwofold(axis('concept'), [axis('correlate')]),
      await askTwofold(axis('concept'), [IDLE]),
    ];
    expect(line.evidence.interchange.value).toBeLessThan(0.7);
    expect(line.verdict.verdict).toBe('weak-causal');
    expect(plane.evidence.interchange.value).toBeGreaterThan(0.9);
    expect(plane.evidence.ablation.value).toBeGreaterThan(0.9);
    expect(plane.verdict).toMatchObject({ verdict: 'causal', reason: 'sufficient-and-necessary' });
    expect(idle.evidence.interchange.value).toBeCloseTo(line.evidence.interchange.value, 1);
    expect(idle.verdict.verdict).not.toBe('causal');
  });

  test('is the same by whatever vectors it is spanned', async () => {
    const first = await askTwofold(axis('concept'), [axis('correlate')]);
    const turned = await askTwofold(sum(axis('correlate'), axis('concept'), 2), [
      sum(axis('concept'), axis('correlate'), -3),
    ]);
    expect(turned.verdict.verdict).toBe(first.verdict.verdict);
    for (const effect of ['steering', 'interchange', 'ablation'] as const)
      expect(turned.evidence[effect].value).toBeCloseTo(first.evidence[effect].value, 4);
    expect(turned.evidence.decodability.auroc).toBeCloseTo(first.evidence.decodability.auroc, 6);
  });

  test('is orthonormal in the evidence, fitted in nothing but the discovery half, and held against random planes', async () => {
    const { evidence } = await askTwofold(axis('concept'), [sum(axis('concept'), axis('correlate'), 1)]);
    const [a = [], b = []] = evidence.direction.basis ?? [];
    const dot = (x: number[], y: number[]) => x.reduce((total, value, i) => total + value * (y[i] ?? Number.NaN), 0);
    expect([dot(a, a), dot(b, b), dot(a, b)].map((value) => Math.round(value * 1e6) / 1e6 + 0)).toEqual([1, 1, 0]);
    expect(evidence.split.by).toBe('pair');
    const line = await askTwofold(axis('concept'));
    expect(line.evidence.direction).not.toHaveProperty('basis');
    expect(line.evidence.split.by).toBe('none');
  });

  test('is refused where a vector adds nothing', async () => {
    await expect(askTwofold(axis('concept'), [axis('concept')])).rejects.toThrow(/adds nothing/);
  });

  test('is a direction of a sweep like any other', async () => {
    const directions = [
      { name: 'line', direction: { kind: 'given' as const, vector: axis('concept') } },
      { name: 'plane', direction: { kind: 'given' as const, vector: axis('concept'), others: [axis('correlate')] } },
    ];
    const { site, dataset, target, seed } = ask({ dataset: plainPairs(32) });
    const question = { sites: [site], directions, dataset, ...(target && { target }), seed };
    const evidence = await runSweep(createPlainEngine({ second: 1 }), question, context());
    expect(evidence.cells.map(({ rank }) => rank)).toEqual([1, 2]);
    expect(evidence.cells.map((cell) => cellState(cell, evidence))).toEqual(['present', 'present']);
    const [line, plane] = evidence.cells.map(({ component }) => component.value);
    expect(plane).toBeGreaterThan(1.3 * (line ?? Number.NaN));
  });
});

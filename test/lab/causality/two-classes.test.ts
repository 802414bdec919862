import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { runProtocol } from '../../../src/lab/causality/protocol.ts';
import type { CausalQuestion } from '../../../src/lab/causality/question.ts';
import { runSweep } from '../../../src/lab/site-sweep/run-sweep.ts';
import { axis, createPlainEngine, plainPairs } from './plain-engine.ts';
import { ask, context } from './questions.ts';

/** Of evidence as JSON, its numbers to nine digits: further ones differ with the machine. */
function fingerprint(evidence: unknown): string {
  const text = JSON.stringify(evidence, (_, value: unknown) =>
    typeof value === 'number' ? Number(value.toPrecision(9)) : value,
  );
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

const given = (vector: number[], others?: number[][]) => ({
  direction: { kind: 'given' as const, vector, ...(others && { others }) },
});
const unpaired = plainPairs(16).map(({ pair: _, ...row }, i) => ({ ...row, template: `t${i % 4 < 2 ? 'a' : 'b'}` }));

/** Taken before there could be more than two classes. */
describe('evidence on two classes is what it was when there could be no more of them', () => {
  test.each<[string, Partial<CausalQuestion>, string]>([
    ['a given direction', {}, '0b0703c66f35dba4'],
    ['a given direction that nothing reads', given(axis('correlate')), '5028f7c0fb9447e8'],
    [
      'a fitted direction, and target words that are found',
      { direction: { kind: 'fit', method: 'difference-of-means' }, dataset: plainPairs(16), target: undefined },
      '3cad5d2434af541c',
    ],
    [
      'a logistic regression',
      { direction: { kind: 'fit', method: 'logistic' }, dataset: plainPairs(16) },
      '81fb6e37307226ec',
    ],
    ['a subspace', { ...given(axis('concept'), [axis('correlate')]), dataset: plainPairs(16) }, '54759e0b2b0515e4'],
    [
      'rows without pairs, in a structure-matched set, too',
      { dataset: unpaired, structureMatched: plainPairs(8, 2) },
      '412ee01905527368',
    ],
    ['answers against the label', { target: { positive: ['no'], negative: ['yes'] } }, 'c4f7eabc3a935ea6'],
  ])('%s', async (_, changes, expected) => {
    const evidence = await runProtocol(createPlainEngine({ second: 0.2 }), ask(changes), context());
    expect(fingerprint(evidence)).toBe(expected);
  });

  test('a sweep', async () => {
    const { site, target, seed } = ask();
    const question = {
      sites: [site, { ...site, position: -2 }],
      directions: [
        { name: 'fitted', direction: { kind: 'fit' as const, method: 'difference-of-means' as const } },
        { name: 'correlate', ...given(axis('correlate')) },
      ],
      dataset: unpaired,
      ...(target && { target }),
      seed,
    };
    expect(fingerprint(await runSweep(createPlainEngine({ second: 0.2 }), question, context()))).toBe(
      'e823c6f5ded64fa7',
    );
  });
});

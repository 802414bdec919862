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
    ['a given direction', {}, 'acf330961be87cfa'],
    ['a given direction that nothing reads', given(axis('correlate')), '3ed7169912580342'],
    [
      'a fitted direction, and target words that are found',
      { direction: { kind: 'fit', method: 'difference-of-means' }, dataset: plainPairs(16), target: undefined },
      'b4541142b04473da',
    ],
    [
      'a logistic regression',
      { direction: { kind: 'fit', method: 'logistic' }, dataset: plainPairs(16) },
      '3f3e0b8c6ae1cce8',
    ],
    ['a subspace', { ...given(axis('concept'), [axis('correlate')]), dataset: plainPairs(16) }, '4e2f0ef012e52239'],
    [
      'rows without pairs, in a structure-matched set, too',
      { dataset: unpaired, structureMatched: plainPairs(8, 2) },
      'b63e89a9771f45fc',
    ],
    ['answers against the label', { target: { positive: ['no'], negative: ['yes'] } }, '9504699f2b73eb9b'],
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
      'd426b3f20e2c317f',
    );
  });
});

import { describe, expect, test } from 'vitest';
import { decide } from '../../../src/lab/causality/decide.ts';
import type { FirstEvidence } from '../../../src/lab/causality/first-edition.ts';
import { anyRecordSchema } from '../../../src/lab/causality/verdict.ts';
import { firstEvidence } from './first-evidence.ts';
import { ask } from './questions.ts';

type Parts = { [Part in keyof FirstEvidence]?: Partial<FirstEvidence[Part]> };

function but(parts: Parts): FirstEvidence {
  const evidence = firstEvidence();
  const changed = Object.entries(parts).map(([name, part]) => {
    const before: unknown = Reflect.get(evidence, name);
    return [name, Object.assign({}, before, part)];
  });
  return { ...evidence, ...Object.fromEntries(changed) };
}

const none = { value: 0, adjusted: 1 };
const guards = (onManifold: number, perplexityRatio: number, divergence: number) => ({
  onManifold: { value: onManifold },
  neutral: { perplexityRatio, divergence },
});

describe('evidence of the first edition', () => {
  test.each<[verdict: string, when: string, Parts]>([
    ['causal : sufficient-and-necessary', 'everything is in order', {}],
    ['undetermined : behaviour-not-expressed', 'the gap is below 0.1', { behaviour: { gap: -0.09 } }],
    ['undetermined : insufficient-nulls', 'random directions are too few', { multiplicity: { needed: 200 } }],
    [
      'epiphenomenal-template : site-locked',
      'nothing passes and steering does nothing',
      { steering: none, interchange: { ...none, full: 0.09 } },
    ],
    ['weak-causal : redundant-pathway', 'it can be done without', { ablation: { value: 0.19 } }],
    ['weak-causal : partial-mediator', 'a part of the behaviour remains', { ablation: { value: 0.49 } }],
    ['weak-causal : possible-dormant-pathway', 'the direction is off the manifold', { guards: guards(0.59, 1, 0) }],
    ['weak-causal : off-manifold-only', 'neutral text suffers', { guards: guards(1, 1.51, 0) }],
    ['weak-causal : off-manifold-only', 'only steering has an effect', { interchange: none, ablation: none }],
    [
      'epiphenomenal-softmax : uniform-rescale',
      'nothing is significant and the scale of logits changes, as that edition concluded',
      { steering: none, interchange: none, ablation: none, sweep: { change: 0.3, commonScale: 0.5 } },
    ],
    [
      'undetermined : effect-not-specific',
      'logits change, but not for this behaviour',
      { steering: none, interchange: none, ablation: none, sweep: { change: 0.3, commonScale: 0.49 } },
    ],
  ])('is decided by its own rules: %s when %s', (expected, _, parts) => {
    const { verdict, reason, sentence } = decide(but(parts));
    expect(`${verdict} : ${reason}`).toBe(expected);
    expect(sentence).toMatch(/\.$/);
  });

  test('can still be read, with all that was stored, and decided again', () => {
    const evidence = firstEvidence('bystander');
    const record = { question: ask(), evidence, verdict: decide(evidence) };
    const read = anyRecordSchema.parse(JSON.parse(JSON.stringify(record)));
    expect(read).toEqual(record);
    expect(read.evidence.steering).toHaveProperty('null');
    expect(decide(read.evidence)).toEqual(record.verdict);
  });
});

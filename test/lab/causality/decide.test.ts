import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { decide } from '../../../src/lab/causality/decide.ts';
import type { Evidence } from '../../../src/lab/causality/evidence.ts';
import { protocolRecordSchema, VERDICTS } from '../../../src/lab/causality/verdict.ts';
import { answer, ask } from './questions.ts';

let causal: Evidence;

beforeAll(async () => {
  causal = (await answer({ featureName: 'goodness' })).evidence;
});

type Parts = { [Part in keyof Evidence]?: Partial<Evidence[Part]> };

/** Causal evidence but for some of its numbers. */
function but(parts: Parts): Evidence {
  const changed = Object.entries(parts).map(([name, part]) => {
    const before: unknown = Reflect.get(causal, name);
    return [name, Object.assign({}, before, part)];
  });
  return { ...causal, ...Object.fromEntries(changed) };
}

const none = { value: 0, adjusted: 1 };
const separation = (auroc: number, low: number) => ({ auroc, interval: { low, high: 1 }, scores: [], labels: [] });
const guards = (changes: { onManifold?: number; perplexityRatio?: number; divergence?: number }) => ({
  onManifold: { ...causal.guards.onManifold, value: changes.onManifold ?? 1 },
  neutral: { ...causal.guards.neutral, perplexityRatio: 1, divergence: 0, ...changes },
});
const flips = (rate: number) => ({ count: 0, of: 100, rate, interval: { low: 0, high: 1 } });

describe('the decision on a verdict', () => {
  test.each<[verdict: string, when: string, () => Parts]>([
    ['causal : sufficient-and-necessary', 'everything is in order', () => ({})],
    [
      'undetermined : not-decodable',
      "the AUROC's interval reaches 0.60",
      () => ({ decodability: separation(0.9, 0.6) }),
    ],
    [
      'undetermined : not-decodable',
      'permuted labels do as well',
      () => ({ decodability: { permutation: { p: 0.05, null: [], refitted: true } } }),
    ],
    [
      'undetermined : not-decodable',
      'the AUROC is not a number',
      () => ({ decodability: separation(Number.NaN, Number.NaN) }),
    ],
    [
      'undetermined : confounded-structural',
      'the structure-matched margin is under half',
      () => ({ structureMatched: separation(0.74, 0.6) }),
    ],
    [
      'undetermined : confounded-structural',
      'its interval includes 0.5',
      () => ({ structureMatched: separation(0.9, 0.5) }),
    ],
    [
      'causal : sufficient-and-necessary',
      'the structure-matched set agrees',
      () => ({ structureMatched: separation(0.9, 0.8) }),
    ],
    ['undetermined : behaviour-not-expressed', 'the gap is below 0.1', () => ({ behaviour: { gap: -0.09 } })],
    ['undetermined : insufficient-nulls', 'random directions are too few', () => ({ multiplicity: { needed: 100 } })],
    [
      'epiphenomenal-template : site-locked',
      'nothing passes and steering does nothing',
      () => ({ steering: none, interchange: { ...none, full: 0.09 } }),
    ],
    ['weak-causal : redundant-pathway', 'it can be done without', () => ({ ablation: { value: 0.19 } })],
    ['weak-causal : partial-mediator', 'a part of the behaviour remains', () => ({ ablation: { value: 0.49 } })],
    ['weak-causal : partial-mediator', 'interchange moves less than half', () => ({ interchange: { value: 0.3 } })],
    ['weak-causal : partial-mediator', 'hardly an answer flips', () => ({ interchange: { answerFlips: flips(0.09) } })],
    [
      'weak-causal : possible-dormant-pathway',
      'the direction is off the manifold',
      () => ({ guards: guards({ onManifold: 0.59 }) }),
    ],
    ['weak-causal : off-manifold-only', 'neutral text suffers', () => ({ guards: guards({ perplexityRatio: 1.51 }) })],
    [
      'weak-causal : off-manifold-only',
      'predictions on neutral text move',
      () => ({ guards: guards({ divergence: 0.11 }) }),
    ],
    ['weak-causal : off-manifold-only', 'only steering has an effect', () => ({ interchange: none, ablation: none })],
    ['weak-causal : unnamed', 'a name is required', () => ({ naming: { required: true, name: '' } })],
    ['causal : sufficient-and-necessary', 'the required name is there', () => ({ naming: { required: true } })],
    [
      'epiphenomenal-softmax : uniform-rescale',
      'only the scale of logits changes',
      () => ({ steering: none, interchange: none, ablation: none, sweep: { change: 0.3, commonScale: 0.5 } }),
    ],
    [
      'epiphenomenal-template : direction-inert',
      'nothing changes at all',
      () => ({ steering: none, interchange: none, ablation: none, sweep: { change: 0.02, commonScale: 0.9 } }),
    ],
    [
      'undetermined : effect-not-specific',
      'logits change, but not for this behaviour',
      () => ({ steering: none, interchange: none, ablation: none, sweep: { change: 0.3, commonScale: 0.49 } }),
    ],
    [
      'undetermined : effect-not-specific',
      'effects are significant but tiny',
      () => ({ steering: { value: 0.04 }, interchange: { value: 0.04 }, sweep: { change: 0.3, commonScale: 0.1 } }),
    ],
  ])('is %s when %s', (expected, _, parts) => {
    const { verdict, reason } = decide(but(parts()));
    expect(`${verdict} : ${reason}`).toBe(expected);
  });

  test('takes the smallest p value that random directions can give for significant', () => {
    // 21 tests, 419 random directions: 21 · (1 / 420) is 0.05 but for the last digit.
    const test = { adjusted: 21 * (1 / 420) };
    expect(decide(but({ steering: test, interchange: test, ablation: test })).verdict).toBe('causal');
    const missed = { adjusted: 21 * (2 / 420) };
    expect(decide(but({ ablation: missed })).verdict).toBe('weak-causal');
  });

  test('says of every row of the table, down to the one that matched, what was found', () => {
    const { path } = decide(but({ interchange: { value: 0.3 } }));
    expect(path.map((row) => row.matched)).toEqual([false, false, false, false, false, false, true]);
    expect(path[5]?.because).toMatch(/^I = 0\.3 \(adjusted p [\d.]+\)$/);
    expect(path.every((row) => row.condition.length > 0 && row.because.length > 0)).toBe(true);
  });

  test('says what it does not claim', () => {
    const { limits, sentence } = decide(causal);
    expect(limits.join(' ')).toMatch(/layer 0 \(resid_post\) at position -1.*"yes" and "no"/);
    expect(limits.join(' ')).toContain('No structure-matched set was given');
    expect(sentence).toMatch(/^The model uses this direction/);
  });

  test('does not change the evidence, decides the same again from what was stored, and always decides', () => {
    const before = JSON.stringify(causal);
    const verdict = decide(causal);
    expect(JSON.stringify(causal)).toBe(before);
    const stored = protocolRecordSchema.parse(
      JSON.parse(JSON.stringify({ question: ask(), evidence: causal, verdict })),
    );
    expect(decide(stored.evidence)).toEqual(verdict);

    const number = fc.double({ noDefaultInfinity: false, noNaN: false });
    fc.assert(
      fc.property(fc.array(number, { minLength: 12, maxLength: 12 }), (values) => {
        const [s = 0, i = 0, n = 0, ps = 0, pi = 0, pn = 0, full = 0, gap = 0, change = 0, scale = 0, low = 0, on = 0] =
          values;
        const { path, verdict: name } = decide(
          but({
            steering: { value: s, adjusted: ps },
            interchange: { value: i, adjusted: pi, full },
            ablation: { value: n, adjusted: pn },
            behaviour: { gap },
            sweep: { change, commonScale: scale },
            decodability: { interval: { low, high: 1 } },
            guards: guards({ onManifold: on }),
          }),
        );
        expect(VERDICTS).toContain(name);
        expect(path.filter((row) => row.matched)).toHaveLength(1);
        if ([s, i, n, ps, pi, pn].some(Number.isNaN)) expect(name).not.toBe('causal');
      }),
    );
  });
});

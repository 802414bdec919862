import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { decide } from '../../../src/lab/causality/decide.ts';
import type { Effect, Evidence } from '../../../src/lab/causality/evidence.ts';
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

/** An effect that was measured well, and beyond random directions. */
const present = (value: number) => ({
  value,
  interval: { low: value - 0.01, high: value + 0.01 },
  adjusted: 0.01,
});
const absent = { value: 0.01, interval: { low: -0.05, high: 0.07 }, adjusted: 1 };
const unknown = { value: 0.3, interval: { low: -0.1, high: 0.7 }, adjusted: 1 };
const none = { steering: absent, interchange: absent, ablation: absent };
const separation = (auroc: number, low: number) => ({ auroc, interval: { low, high: 1 }, scores: [], labels: [] });
const share = (rate: number, of = 100) => ({ count: Math.round(rate * of), of, rate, interval: { low: 0, high: 1 } });
const fewFlips = { interchange: { answerFlips: share(0, 9), answers: share(0.4) } };
const dead = { full: { value: 0.02, interval: { low: -0.04, high: 0.09 } } };

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
    [
      'undetermined : behaviour-not-expressed',
      "the gap's interval reaches below 0.1",
      () => ({ behaviour: { gap: 0.2, interval: { low: 0.09, high: 0.3 } } }),
    ],
    [
      'causal : sufficient-and-necessary',
      'the gap has the other sign, and is large enough',
      () => ({ behaviour: { gap: -0.2, interval: { low: -0.3, high: -0.11 } } }),
    ],
    [
      'epiphenomenal-template : site-locked',
      'nothing passes, and nothing is present',
      () => ({ ...none, interchange: { ...absent, ...dead } }),
    ],
    [
      'epiphenomenal-template : site-locked',
      'nothing passes, whatever is unknown',
      () => ({ steering: unknown, interchange: { ...unknown, ...dead } }),
    ],
    [
      'weak-causal : partial-mediator',
      'nothing passes in all, but the direction has an effect',
      () => ({ interchange: dead }),
    ],
    [
      'undetermined : temperature-unknown',
      'too many runs cannot be told apart from a change of temperature',
      () => ({ temperature: { untold: share(0.21) } }),
    ],
    [
      'undetermined : temperature-unknown',
      'too many runs along random directions cannot',
      () => ({ temperature: { untoldAtRandom: share(0.21) } }),
    ],
    ['causal : sufficient-and-necessary', 'a few runs cannot', () => ({ temperature: { untold: share(0.19) } })],
    ['weak-causal : redundant-pathway', 'it can be done without', () => ({ ablation: present(0.19) })],
    ['weak-causal : redundant-pathway', 'necessity is absent', () => ({ ablation: absent })],
    ['weak-causal : partial-mediator', 'a part of the behaviour remains', () => ({ ablation: present(0.59) })],
    [
      'weak-causal : partial-mediator',
      'interchange moves half of the behaviour',
      () => ({ interchange: present(0.51) }),
    ],
    ['causal : sufficient-and-necessary', 'interchange moves most of it', () => ({ interchange: present(0.61) })],
    ['weak-causal : partial-mediator', 'necessity is unknown', () => ({ ablation: unknown })],
    [
      'weak-causal : partial-mediator',
      'hardly an answer flips that could',
      () => ({ interchange: { answerFlips: share(0.09) } }),
    ],
    [
      'causal : sufficient-and-necessary',
      'no answer can flip, and the answers are target words',
      () => ({ interchange: { answerFlips: share(0, 3), answers: share(0.6) } }),
    ],
    [
      'weak-causal : partial-mediator',
      'few answers can flip, they are other words, and other words differ as much',
      () => ({ ...fewFlips, specificity: { otherWords: share(0.02) } }),
    ],
    [
      'weak-causal : partial-mediator',
      'few answers can flip, they are other words, and it is not known how much other words differ',
      () => ({ ...fewFlips, specificity: { otherWords: undefined } }),
    ],
    [
      'causal : sufficient-and-necessary',
      'few answers can flip, and the given target words differ more than other words',
      () => ({ ...fewFlips, target: { chosen: 'given' }, specificity: { otherWords: share(0.01) } }),
    ],
    [
      'weak-causal : partial-mediator',
      'few answers can flip, and the target words were chosen because they differ most',
      () => ({ ...fewFlips, target: { chosen: 'discovery' }, specificity: { otherWords: share(0) } }),
    ],
    [
      'causal : sufficient-and-necessary',
      'steering is weak where the read-out saturates',
      () => ({ steering: { ...present(0.3), saturation: { within: 0.6, beyond: 0.1 } } }),
    ],
    [
      'weak-causal : partial-mediator',
      'steering is weak and nothing saturates',
      () => ({ steering: { ...present(0.3), saturation: { within: 0.6, beyond: 0.5 } } }),
    ],
    [
      'weak-causal : acts-against-label',
      'the direction moves the behaviour the other way',
      () => ({ steering: present(-0.98), interchange: present(-1), ablation: present(-1) }),
    ],
    [
      'weak-causal : acts-against-label',
      'only steering is present, and goes the other way',
      () => ({ steering: present(-0.5), interchange: unknown, ablation: unknown }),
    ],
    [
      'weak-causal : possible-dormant-pathway',
      'most of the effect comes from where counterfactuals never differ',
      () => ({ dormancy: { within: 0.4, rest: 0.41 } }),
    ],
    ['weak-causal : off-manifold-only', 'everything else suffers', () => ({ harm: { component: 0.21, whole: 0.1 } })],
    [
      'causal : sufficient-and-necessary',
      'everything else changes as it does by nature',
      () => ({ harm: { component: 0.19, whole: 0.1 } }),
    ],
    [
      'causal : sufficient-and-necessary',
      'next to nothing changes, but by more than by nature',
      () => ({ harm: { component: 0.009, whole: 0.001 } }),
    ],
    ['weak-causal : unnamed', 'a name is required', () => ({ naming: { required: true, name: '' } })],
    ['causal : sufficient-and-necessary', 'the required name is there', () => ({ naming: { required: true } })],
    [
      'weak-causal : partial-mediator',
      'only steering has an effect',
      () => ({ interchange: unknown, ablation: unknown, steering: present(0.2) }),
    ],
    [
      'undetermined : underpowered',
      'effects are large and not significant',
      () => {
        const large = { ...present(1), adjusted: 0.09 };
        return { steering: large, interchange: large, ablation: large };
      },
    ],
    ['undetermined : underpowered', 'one of them is unknown', () => ({ ...none, ablation: unknown })],
    [
      'epiphenomenal-softmax : uniform-rescale',
      'only the scale of logits changes',
      () => ({ ...none, sweep: { change: 0.3, commonScale: 0.5 } }),
    ],
    [
      'epiphenomenal-template : direction-inert',
      'nothing changes at all',
      () => ({ ...none, sweep: { change: 0.02, commonScale: 0.9 } }),
    ],
    [
      'undetermined : effect-not-specific',
      'logits change, but not for this behaviour',
      () => ({ ...none, sweep: { change: 0.3, commonScale: 0.49 } }),
    ],
  ])('is %s when %s', (expected, _, parts) => {
    const { verdict, reason } = decide(but(parts()));
    expect(`${verdict} : ${reason}`).toBe(expected);
  });

  test('takes a p value at the bound for significant, whatever its last digit', () => {
    const test = { adjusted: 21 * (1 / 420) };
    expect(decide(but({ steering: test, interchange: test, ablation: test })).verdict).toBe('causal');
    expect(decide(but({ ablation: { adjusted: 21 * (2 / 420) } }))).toMatchObject({
      verdict: 'undetermined',
      reason: 'underpowered',
    });
  });

  test('calls nothing a partial mediator for an effect of full size that is merely not shown', () => {
    const { verdict, reason, sentence } = decide(but({ ablation: { ...unknown, value: 0.94 } }));
    expect([verdict, reason]).toEqual(['undetermined', 'underpowered']);
    expect(sentence).toMatch(/^The direction acts on the behaviour, .* not shown \(N unknown/);
    const partial = decide(but({ ablation: { ...unknown, value: 0.3 } }));
    expect([partial.verdict, partial.reason]).toEqual(['weak-causal', 'partial-mediator']);
  });

  test('says how many pairs would settle what the interval leaves open', () => {
    const wide: Partial<Effect> = { ...unknown, value: 0.25, interval: { low: -0.15, high: 0.65 } };
    const { wanted, sentence } = decide(but({ steering: wide, interchange: wide, ablation: wide }));
    // The interval must shrink from 0.4 to 0.2 on either side, which takes four times the twelve pairs.
    expect(wanted).toEqual({ pairs: 36 });
    expect(sentence).toContain('about 36 more pairs of prompts would settle it');
  });

  test('says of every row of the table, down to the one that matched, what was found', () => {
    const { path } = decide(but({ interchange: present(0.3) }));
    expect(path.map((row) => row.matched)).toEqual([false, false, false, false, false, false, false, true]);
    expect(path[5]?.because).toBe('I = 0.3 [0.29, 0.31] (present, adjusted p 0.01)');
    expect(path.every((row) => row.condition.length > 0 && row.because.length > 0)).toBe(true);
  });

  test('says what it does not claim', () => {
    const { limits, sentence } = decide(causal);
    expect(limits.join(' ')).toMatch(/layer 0 \(resid_post\) at position -1.*"yes" and "no"/);
    expect(limits.join(' ')).toContain('No structure-matched set was given');
    expect(sentence).toMatch(/^The model uses this direction/);
    const inert = decide(but({ ...none, sweep: { change: 0.3, commonScale: 0.9 } }));
    expect(inert.sentence).toMatch(/^The direction is not used for this contrast/);
    expect(inert.limits.join(' ')).toContain('only this contrast was tested');
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
        const tested = (value: number, adjusted: number) => ({
          value,
          adjusted,
          interval: { low: value - 0.1, high: value + 0.1 },
        });
        const { path, verdict: name } = decide(
          but({
            steering: tested(s, ps),
            interchange: { ...tested(i, pi), full: { value: full, interval: { low: full, high: full } } },
            ablation: tested(n, pn),
            behaviour: { gap },
            sweep: { change, commonScale: scale },
            decodability: { interval: { low, high: 1 } },
            dormancy: { rest: on },
          }),
        );
        expect(VERDICTS).toContain(name);
        expect(path.filter((row) => row.matched)).toHaveLength(1);
        if ([s, i, n, ps, pi, pn].some(Number.isNaN)) expect(name).not.toBe('causal');
      }),
    );
  });
});

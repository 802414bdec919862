import { describe, expect, test } from 'vitest';
import { labelsOf } from '../../../src/lab/causality/dataset.ts';
import {
  balancedMean,
  type InterventionSample,
  labelOf,
  partnerOf,
} from '../../../src/lab/causality/intervention-sample.ts';
import { runProtocol } from '../../../src/lab/causality/protocol.ts';
import { lineAlong } from '../../../src/lab/causality/subspace.ts';
import type { Engine, ForwardRequest, VariantResult } from '../../../src/lab/core/engine.ts';
import { likeliest, logitOf } from '../../../src/lab/core/logits.ts';
import { createPlainEngine, plainPairs } from './plain-engine.ts';
import { ask, context } from './questions.ts';

/** The plain model, whose results are changed where the request is one of those meant. */
function damaged(
  isMeant: (request: ForwardRequest) => boolean,
  change: (result: VariantResult) => VariantResult,
): Engine {
  const engine = createPlainEngine();
  return {
    ...engine,
    async run(request, signal) {
      const results = await engine.run(request, signal);
      return isMeant(request) ? results.map(change) : results;
    },
  };
}

const withoutLogits = ({ logits: _, ...rest }: VariantResult): VariantResult => rest;
const withoutSurprise = ({ surprise: _, ...rest }: VariantResult): VariantResult => rest;
const withFewerLogits = (result: VariantResult): VariantResult => ({
  ...result,
  ...(result.logits && { logits: result.logits.slice(1) }),
});

const asksForSite = ({ taps }: ForwardRequest) => taps?.some(({ positions }) => !('from' in positions)) === true;
const asksForVocabulary = ({ logits, variants }: ForwardRequest) => logits !== undefined && variants === undefined;
const asksForTokens = ({ logits }: ForwardRequest) => logits?.tokens !== undefined;
const asksForSweep = ({ logits, variants }: ForwardRequest) =>
  logits !== undefined && logits.tokens === undefined && variants !== undefined;
const asksForSurprise = ({ surprise }: ForwardRequest) => surprise === true;

describe('the causality protocol names what an engine left out, and gives no verdict:', () => {
  test.each<[string, Engine, string]>([
    [
      'the activation at the site',
      damaged(asksForSite, (result) => ({ ...result, activations: [] })),
      'no activation of variant 0,',
    ],
    [
      'a number of the activation at the site',
      damaged(asksForSite, ({ activations, ...rest }) => ({
        ...rest,
        activations: activations.map((one) => one.slice(1)),
      })),
      'asked for 96 numbers of the activations of variant 0 and gave 95',
    ],
    ['the logits of the prompts', damaged(asksForVocabulary, withoutLogits), 'no logits of variant 0,'],
    [
      'a logit of the prompts',
      damaged(asksForVocabulary, withFewerLogits),
      'asked for 66 logits of variant 0 and gave 65',
    ],
    ['the logits of target and control tokens', damaged(asksForTokens, withoutLogits), 'no logits of variant 0,'],
    ['a logit of the target tokens', damaged(asksForTokens, withFewerLogits), 'logits of variant 0 and gave'],
    ['the logits of the sweep', damaged(asksForSweep, withoutLogits), 'no logits of variant 0,'],
    ['the surprise of neutral text', damaged(asksForSurprise, withoutSurprise), 'no surprise of variant 0,'],
    [
      'a log probability of neutral text',
      damaged(asksForSurprise, ({ surprise, ...rest }) => ({
        ...rest,
        ...(surprise && { surprise: { ...surprise, logProbabilities: surprise.logProbabilities.slice(1) } }),
      })),
      'log probabilities of variant 0 and gave',
    ],
  ])('%s', async (_, engine, message) => {
    await expect(runProtocol(engine, ask(), context())).rejects.toMatchObject({
      code: 'internal',
      message: expect.stringContaining(message),
    });
  });
});

describe('reading a value that is absent throws an error that names it:', () => {
  const subjects: InterventionSample = {
    site: { layer: 0, place: 'resid_post', position: -1 },
    seed: 1,
    width: 1,
    labels: [1, 0],
    classes: 2,
    clusters: [],
    activations: [],
    partners: [1, 0],
    subspace: lineAlong(Float32Array.of(1)),
  };

  test('the label of a row, which would count as class 0', () => {
    expect(labelOf(subjects, 1)).toBe(0);
    expect(() => labelOf(subjects, 2)).toThrow('no label of row 2,');
    expect(() => labelsOf(plainPairs(1), [0, 2])).toThrow('no row of the dataset 2,');
  });

  test('the partner of a row, which would be the row itself', () => {
    expect(() => partnerOf(subjects, 2)).toThrow('no partner of row 2,');
  });

  test('the value of a row in a mean, which would pull it to zero', () => {
    expect(balancedMean(subjects, Float64Array.of(4, 2))).toBe(3);
    expect(() => balancedMean(subjects, Float64Array.of(4), [0, 1])).toThrow('no value of row 1,');
    expect(() => balancedMean(subjects, Float64Array.of(4, 2, 6))).toThrow('no label of row 2,');
  });

  test('the logit of a token that the model does not have', () => {
    const logits = Float32Array.of(-3, -1, -1);
    expect(logitOf(logits, 1)).toBe(-1);
    expect(() => logitOf(logits, 3)).toThrow('no logit of token 3,');
    expect(likeliest(logits)).toBe(1);
    expect(() => likeliest(new Float32Array())).toThrow('no logit of token 0,');
  });
});

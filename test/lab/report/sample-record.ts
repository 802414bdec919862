/** Makes protocol records with made-up values: of a full mediator, and of a direction without effect. */

import type { Effect } from '../../../src/lab/causality/evidence.ts';
import { type ProtocolRecord, protocolRecordSchema } from '../../../src/lab/causality/verdict.ts';
import { createRandom } from '../../../src/lab/statistics/random.ts';

const HASH = 'c0ffee00'.repeat(8);

export function sampleRecord(kind: 'mediator' | 'bystander' = 'mediator', prompts = 60): ProtocolRecord {
  const random = createRandom(7, kind);
  const normal = (mean = 0, deviation = 1) => mean + deviation * random.normal();
  const many = (count: number, one: (index: number) => number) =>
    Array.from({ length: count }, (_, index) => one(index));
  const labels = many(prompts, (index) => index % 2) as (0 | 1)[];
  const strength = kind === 'mediator' ? 0.93 : 0.01;
  const share = (rate: number) => ({
    count: Math.round(rate * prompts),
    of: prompts,
    rate: Math.round(rate * prompts) / prompts,
    interval: { low: Math.max(0, rate - 0.08), high: Math.min(1, rate + 0.08) },
  });
  const effect = (value: number): Effect => ({
    value,
    whole: 2,
    interval: { low: value - 0.06, high: value + 0.06 },
    each: many(prompts, () => 2 * normal(value, 0.2)),
    null: many(199, () => normal(0, 0.05)),
    p: value > 0.2 ? 0.005 : 0.41,
    adjusted: value > 0.2 ? 0.015 : 0.82,
  });
  const dose = (norm: number) => ({ absolute: norm * 11.4, swing: norm * 2.1, norm });
  const sweep = (isRandom: boolean) =>
    [-2, -1, -0.5, 0.5, 1, 2].map((norm) => {
      const flips = isRandom ? Math.abs(norm) * 0.04 : Math.min(1, Math.abs(norm) * strength * 0.9);
      return {
        dose: dose(norm),
        flips: share(flips),
        towardTarget: share(flips * 0.9),
        change: Math.abs(norm) * 0.12,
        commonScale: isRandom || strength < 0.1 ? 0.8 : 0.2,
        deltaRelative: norm * strength * 4,
      };
    });
  return protocolRecordSchema.parse({
    question: {
      site: { layer: 1, place: 'resid_post', position: -1 },
      direction: { kind: 'fit', method: 'difference-of-means' },
      dataset: labels.map((label, index) => ({
        prompt: `the ${label ? 'keys' : 'key'} ${index}`,
        label,
        pair: `${index >> 1}`,
      })),
      seed: 7,
    },
    evidence: {
      format: 3,
      version: '0.1.0',
      seed: 7,
      model: {
        id: 'demo',
        engine: 'embedded',
        architecture: 'LlamaForCausalLM',
        layers: 3,
        width: 64,
        dtype: 'float32',
        weights: HASH,
        tokenizer: HASH,
      },
      data: { hash: HASH, rows: prompts * 2, positives: prompts, negatives: prompts, pairs: prompts, templates: 4 },
      site: { layer: 1, place: 'resid_post', position: -1 },
      split: {
        by: 'pair',
        discovery: many(prompts, (index) => index),
        test: many(prompts, (index) => prompts + index),
        intervened: many(prompts, (index) => prompts + index),
      },
      direction: {
        kind: 'fit',
        method: 'difference-of-means',
        vector: many(64, () => normal(0, 0.125)),
        hash: HASH,
        swing: 5.4,
        norm: 11.4,
        difference: { length: 5.6, along: 0.93 },
      },
      target: { positive: [{ id: 4, text: ' are' }], negative: [{ id: 5, text: ' is' }], chosen: 'given' },
      controls: { tokens: many(30, (id) => id).map((id) => ({ id, text: `w${id}` })), chosen: 'matched' },
      decodability: {
        auroc: 0.987,
        interval: { low: 0.96, high: 1 },
        scores: labels.map((label) => normal(label ? 2.7 : -2.7, 1.4)),
        resolution: 0.001,
        labels,
        bootstraps: 400,
        permutation: { p: 0.005, null: many(199, () => normal(0.5, 0.07)), refitted: true },
        random: { mean: 0.57, high: 0.71, best: 0.78, null: many(99, () => 0.5 + Math.abs(normal(0, 0.08))) },
        controlTask: { auroc: 0.52, selectivity: 0.467, tasks: 10 },
      },
      behaviour: {
        gap: 2.31,
        interval: { low: 2.05, high: 2.55 },
        margins: labels.map((label) => normal(label ? 2.3 : -2.3, 0.9)),
        labels,
        expressed: share(0.98),
      },
      steering: {
        ...effect(strength),
        dose: dose(0.24),
        wrongWay: share(0.03),
        uncorrected: strength + 0.1,
        deltaRelative: 2.2,
        saturation: { within: strength, beyond: strength * 0.8 },
      },
      interchange: {
        ...effect(strength * 0.95),
        full: { value: 0.99, interval: { low: 0.95, high: 1.03 } },
        complement: 1 - strength,
        flips: share(strength),
        answerFlips: share(strength * 0.9),
        answers: share(0.9),
        partners: { pair: prompts, template: 0, any: 0 },
      },
      ablation: { ...effect(strength * 0.9), gap: 2.31 * (1 - strength) },
      temperature: { mean: 1.01, low: 0.93, high: 1.08, untold: share(0), untoldAtRandom: share(0) },
      multiplicity: { question: 1, rate: 0.05, level: 0.005, spent: 0.005, nulls: 199, most: 799, stable: true },
      sweep: {
        rows: sweep(false),
        random: sweep(true),
        randomDirections: 8,
        asked: [],
        change: 0.24,
        commonScale: kind === 'mediator' ? 0.2 : 0.8,
      },
      dormancy: { within: strength, rest: 0.005, geometric: 0.91, differences: prompts * 2 },
      harm: { component: kind === 'mediator' ? 0.031 : 0.2, whole: 0.05 },
      specificity: {
        doseMatched: { null: many(39, () => normal(0, 0.2)), asMuch: share(kind === 'mediator' ? 0 : 0.9) },
        neutral: {
          prompts: 24,
          tokens: 412,
          dose: dose(0.24),
          perplexityRatio: 1.08,
          divergence: 0.031,
          random: { perplexityRatio: 1.01, divergence: 0.004 },
        },
      },
      examples: [0, 1].map((row) => ({
        row,
        partner: 1 - row,
        before: { id: 4 + row, text: row === 1 ? ' are' : ' is', probability: 0.61 },
        component: { id: 5 - row, text: row === 1 ? ' is' : ' are', probability: 0.52 },
        whole: { id: 5 - row, text: row === 1 ? ' is' : ' are', probability: 0.6 },
      })),
      naming: { required: false, name: kind === 'mediator' ? 'Number of the subject' : 'Number of the distractor' },
    },
    verdict: {
      verdict: kind === 'mediator' ? 'causal' : 'epiphenomenal-softmax',
      reason: kind === 'mediator' ? 'sufficient-and-necessary' : 'uniform-rescale',
      sentence:
        'Steering, interchange and ablation all move at least half of the natural gap, and random directions do not.',
      path: [
        {
          condition: 'Not decodable: the AUROC interval reaches 0.60 or below, or p ≥ 0.05',
          matched: false,
          because: 'AUROC 0.99 [0.96, 1.00], p = 0.005',
        },
        { condition: 'Behaviour not expressed: |G| < 0.1', matched: false, because: 'G = 2.31' },
        {
          condition: 'Sufficient and necessary',
          matched: true,
          because: 'S 0.93, I 0.88, N 0.84; each with adjusted p = 0.015',
        },
      ],
      limits: ['Nothing is claimed about other sites, other prompts or other models.'],
    },
  });
}

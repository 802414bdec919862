/**
 * What a run of the causality protocol is asked, what it finds, and what is decided from it, as plain JSON. Everything that the
 * decision rests on is in the evidence, so that anyone can decide again.
 */

import * as z from 'zod';

const label = z.union([z.literal(0), z.literal(1)]);

const datasetRow = z.object({
  prompt: z.string(),
  label,
  /** Rows of one pair are counterfactuals of each other: the same prompt but for what the label is about. */
  pair: z.string().optional(),
  /** Rows of one template share their wording. */
  template: z.string().optional(),
});

const site = z.object({
  layer: z.number().int().nonnegative(),
  place: z.enum(['resid_pre', 'attn_out', 'mlp_out', 'resid_post']),
  /** Of a prompt's tokens; -1 is the last. The behaviour is always read at the last. */
  position: z.number().int(),
});

const direction = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('given'),
    vector: z.array(z.number()),
    /** For the record: where it came from. */
    source: z.string().optional(),
    /** Rows of the dataset that it was trained on, by number. They are never tested on. */
    trainedOn: z.array(z.number().int().nonnegative()).optional(),
  }),
  z.object({
    kind: z.literal('fit'),
    method: z.enum(['difference-of-means', 'logistic']),
    /** Of the logistic regression, as scikit-learn has it: the inverse of the penalty's weight. 1 by default. */
    c: z.number().positive().optional(),
  }),
]);

/** Units of a dose: as the residual stream has them, the distance between the class means along the direction, or the mean length of the activation. */
const doseUnit = z.enum(['absolute', 'swing', 'norm']);

const questionSchema = z.object({
  site,
  direction,
  dataset: z.array(datasetRow),
  /** Words that the model may say next, each one token. Without them: the two tokens that tell the classes apart best in the discovery half. */
  target: z.object({ positive: z.array(z.string()).min(1), negative: z.array(z.string()).min(1) }).optional(),
  /** Words whose logits tell a change of temperature. Without them: tokens with base logits like those of the target. */
  controls: z.array(z.string()).optional(),
  /** Plain text that has nothing to do with the question, for the guards. */
  neutralPrompts: z.array(z.string()).optional(),
  /** Rows whose classes share their wording, so that only the concept tells them apart: a direction that reads wording tells them apart no more. */
  structureMatched: z.array(datasetRow).optional(),
  featureName: z.string().optional(),
  /** Whether a direction without a name can be causal. */
  nameRequired: z.boolean().optional(),
  /** Random directions that each effect is compared with. By default as many as the number of tests calls for, 99 at least. */
  nulls: z.number().int().min(19).max(20_000).optional(),
  seed: z.number().int().nonnegative(),
  sweep: z.object({ values: z.array(z.number()).min(1), unit: doseUnit }).optional(),
});

const interval = z.object({ low: z.number(), high: z.number() });
const token = z.object({ id: z.number().int(), text: z.string() });
const dose = z.object({ absolute: z.number(), swing: z.number(), norm: z.number() });
const share = z.object({ count: z.number().int(), of: z.number().int(), rate: z.number(), interval });

/** AUROC of scores, with what a picture of them needs. */
const separation = z.object({
  auroc: z.number(),
  /** 95 %, by bootstrap over pairs. */
  interval,
  scores: z.array(z.number()),
  /** Two scores that are closer count in proportion to how far they are apart, and not as one above the other. */
  resolution: z.number(),
  labels: z.array(label),
});

/** One effect as a share of the natural one, against the same done with random directions. */
const effect = z.object({
  value: z.number(),
  /** What a share of 1 is, in logits. */
  whole: z.number(),
  /** 95 %, by bootstrap over pairs. */
  interval,
  /** What each prompt adds, in logits, in the order of `split.intervened`. */
  each: z.array(z.number()),
  null: z.array(z.number()),
  p: z.number(),
  /** By Holm, over all tests of the lab session. */
  adjusted: z.number(),
});

const sweepRow = z.object({
  dose,
  /** The likeliest token becomes another one. */
  flips: share,
  /** It becomes one of the target that the sign of the dose asks for. */
  towardTarget: share,
  /** ‖Δlogit‖ / ‖logit‖ over the vocabulary, logits taken from their mean. */
  change: z.number(),
  /** The share of the change that one factor common to all logits explains. */
  commonScale: z.number(),
  /** Mean of Δlogit(what the target asks for) − mean Δlogit(controls), before correction for temperature. */
  deltaRelative: z.number(),
});

export const evidenceSchema = z.object({
  format: z.literal(2),
  version: z.string(),
  seed: z.number().int(),
  model: z.object({
    id: z.string(),
    engine: z.string(),
    architecture: z.string(),
    layers: z.number().int(),
    width: z.number().int(),
    dtype: z.string(),
    weights: z.string(),
    tokenizer: z.string(),
  }),
  data: z.object({
    /** SHA-256 of the rows of the dataset, the neutral prompts and the structure-matched set. */
    hash: z.string(),
    rows: z.number().int(),
    positives: z.number().int(),
    negatives: z.number().int(),
    /** 0 when rows have none. */
    pairs: z.number().int(),
    templates: z.number().int(),
  }),
  site,
  split: z.object({
    /** What is kept together. `none`: the direction and the target were given, all rows are tested. */
    by: z.enum(['pair', 'template', 'row', 'given', 'none']),
    discovery: z.array(z.number().int()),
    test: z.array(z.number().int()),
    /** Rows of the test half that were intervened on: all of them, unless there are very many. */
    intervened: z.array(z.number().int()),
  }),
  direction: z.object({
    kind: z.enum(['given', 'fit']),
    method: z.string(),
    source: z.string().optional(),
    /** Of length 1. */
    vector: z.array(z.number()),
    hash: z.string(),
    /** Distance between the class means along the direction, in the test half. */
    swing: z.number(),
    /** Mean length of the activation at the site, in the test half. */
    norm: z.number(),
    /** How long the class means' distance is in all, and what share of it (squared) lies along the direction. */
    difference: z.object({ length: z.number(), along: z.number() }),
  }),
  target: z.object({
    positive: z.array(token),
    negative: z.array(token),
    chosen: z.enum(['given', 'discovery']),
  }),
  controls: z.object({ tokens: z.array(token), chosen: z.enum(['given', 'matched']) }),
  decodability: separation.extend({
    bootstraps: z.number().int(),
    permutation: z.object({ p: z.number(), null: z.array(z.number()), refitted: z.boolean() }),
    /** AUROCs of random directions on the same activations, the better way round. */
    random: z.object({ mean: z.number(), high: z.number(), best: z.number(), null: z.array(z.number()) }),
    /** AUROC for labels that mean nothing but are as easy to learn by heart; what the direction is better by. */
    controlTask: z.object({ auroc: z.number(), selectivity: z.number(), tasks: z.number().int() }),
  }),
  behaviour: z.object({
    /** Natural gap G: half of the distance between the classes' mean margins. */
    gap: z.number(),
    interval,
    /** Logit(positive) − logit(negative) of each prompt, in the order of `split.intervened`. */
    margins: z.array(z.number()),
    labels: z.array(label),
    /** Prompts where the margin's sign is the label's. */
    expressed: share,
  }),
  steering: effect.extend({
    dose,
    /** Prompts where adding the direction lowers what it should raise. */
    wrongWay: share,
    /** Without correction for temperature. */
    uncorrected: z.number(),
    /** Mean Δlogit(target) − mean Δlogit(controls) between both signs, halved. */
    deltaRelative: z.number(),
  }),
  interchange: effect.extend({
    /** The whole activation is swapped: whether anything passes through this site. */
    full: z.number(),
    /** All but the direction's component is swapped. */
    complement: z.number(),
    /** The model comes to prefer the partner's target tokens to its own. */
    flips: share,
    /** The likeliest token of all goes from its own target tokens to one of the partner's: flips of the answer at the natural dose. */
    answerFlips: share,
    /** How many partners were the row's own pair, of its template, or any of the other label. */
    partners: z.object({ pair: z.number().int(), template: z.number().int(), any: z.number().int() }),
  }),
  ablation: effect.extend({ gap: z.number() }),
  /** Factors that the interventions above put on all logits. */
  temperature: z.object({ mean: z.number(), low: z.number(), high: z.number(), clamped: z.number().int() }),
  multiplicity: z.object({
    /** Sites and directions tried in this lab session, this one included. */
    family: z.number().int(),
    tests: z.number().int(),
    nulls: z.number().int(),
    needed: z.number().int(),
  }),
  /** Half, one and two lengths of the activation, both signs: what the decision rests on. */
  sweep: z.object({
    rows: z.array(sweepRow),
    /** The same doses along random directions, all of them together. */
    random: z.array(sweepRow),
    randomDirections: z.number().int(),
    /** Doses that the question asked for, beyond those. */
    asked: z.array(sweepRow),
    /** The largest change in `rows`, and the share of all change in them that common factors explain. */
    change: z.number(),
    commonScale: z.number(),
  }),
  guards: z.object({
    /** Share of the direction (squared) that lies where activations vary, against what held-out activations reach themselves. */
    onManifold: z.object({ value: z.number(), share: z.number(), reach: z.number(), rows: z.number().int() }),
    neutral: z.object({
      prompts: z.number().int(),
      tokens: z.number().int(),
      dose,
      /** The larger of both signs of the dose. */
      perplexityRatio: z.number(),
      /** Nats, the larger of both signs. */
      divergence: z.number(),
      /** The same for random directions of the same length, in the mean. */
      random: z.object({ perplexityRatio: z.number(), divergence: z.number() }),
    }),
  }),
  structureMatched: separation.optional(),
  naming: z.object({ required: z.boolean(), name: z.string().optional() }),
});

export const VERDICTS = [
  'causal',
  'weak-causal',
  'epiphenomenal-softmax',
  'epiphenomenal-template',
  'undetermined',
] as const;

const REASONS = [
  'not-decodable',
  'confounded-structural',
  'behaviour-not-expressed',
  'insufficient-nulls',
  'site-locked',
  'sufficient-and-necessary',
  'partial-mediator',
  'redundant-pathway',
  'possible-dormant-pathway',
  'off-manifold-only',
  'unnamed',
  'uniform-rescale',
  'direction-inert',
  'effect-not-specific',
] as const;

const verdictSchema = z.object({
  verdict: z.enum(VERDICTS),
  reason: z.enum(REASONS),
  /** One sentence for the record. */
  sentence: z.string(),
  /** The rows of the decision table in their order, down to the one that matched. */
  path: z.array(z.object({ condition: z.string(), matched: z.boolean(), because: z.string() })),
  /** What the verdict does not claim. */
  limits: z.array(z.string()),
});

export const protocolRecordSchema = z.object({
  question: questionSchema,
  evidence: evidenceSchema,
  verdict: verdictSchema,
});

export type DatasetRow = z.infer<typeof datasetRow>;
export type CausalQuestion = z.infer<typeof questionSchema>;
export type Interval = z.infer<typeof interval>;
export type Dose = z.infer<typeof dose>;
export type Share = z.infer<typeof share>;
export type Separation = z.infer<typeof separation>;
export type Effect = z.infer<typeof effect>;
export type SweepRow = z.infer<typeof sweepRow>;
export type Evidence = z.infer<typeof evidenceSchema>;
export type VerdictName = (typeof VERDICTS)[number];
export type VerdictReason = (typeof REASONS)[number];
export type Verdict = z.infer<typeof verdictSchema>;
export type ProtocolRecord = z.infer<typeof protocolRecordSchema>;

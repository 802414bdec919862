/** Defines what the evidence of every edition of the causality protocol has: model, data, site, direction, target, decodability and the sweep over doses. */

import * as z from 'zod';
import { labelSchema, siteSchema } from './question.ts';

export const intervalSchema = z.object({ low: z.number(), high: z.number() });
export const token = z.object({ id: z.number().int(), text: z.string() });
export const dose = z.object({ absolute: z.number(), swing: z.number(), norm: z.number() });
export const share = z.object({
  count: z.number().int(),
  of: z.number().int(),
  rate: z.number(),
  interval: intervalSchema,
});

/** AUROC of scores, with what a picture of them needs. */
const separation = z.object({
  auroc: z.number(),
  /** 95 %, by bootstrap over pairs. */
  interval: intervalSchema,
  scores: z.array(z.number()),
  /** Two scores that are closer count in proportion to how far they are apart, and not as one above the other. */
  resolution: z.number(),
  labels: z.array(labelSchema),
  /** With more than two classes: the AUROC of each pair of them along the line between their means, of which `auroc` is the mean. Scores are along `direction.vector`. */
  between: z.array(z.object({ classes: z.array(labelSchema), auroc: z.number() })).optional(),
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

export const commonEvidence = z.object({
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
    /** Of every class, where there are more than two or they have names; `positives` and `negatives` are then those of the classes 1 and 0. */
    classes: z.array(z.object({ name: z.string(), rows: z.number().int() })).optional(),
    /** 0 when rows have none. */
    pairs: z.number().int(),
    templates: z.number().int(),
  }),
  site: siteSchema,
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
    /**
     * Orthonormal vectors of the tested subspace, where it has several dimensions; `vector` is then the line between the class means in it, with more than
     * two classes that along which they lie furthest apart.
     */
    basis: z.array(z.array(z.number())).optional(),
    /** Of a subspace that was fitted on interchange: what it was searched among, and the share of the behaviour that it recovers in the discovery half. */
    search: z
      .object({
        axes: z.number().int(),
        rows: z.number().int(),
        steps: z.number().int(),
        runs: z.number().int(),
        recovered: z.number(),
      })
      .optional(),
    hash: z.string(),
    /** Distance between the class means along the direction, in the test half; with more than two classes, between those furthest apart. */
    swing: z.number(),
    /** Mean length of the activation at the site, in the test half. */
    norm: z.number(),
    /** How long the class means' distance is in all (root mean square over pairs of classes), and what share of it (squared) lies along the direction. */
    difference: z.object({ length: z.number(), along: z.number() }),
  }),
  target: z.object({
    positive: z.array(token),
    negative: z.array(token),
    /** Of the classes from 2 on, where there are more than two. */
    others: z.array(z.array(token)).optional(),
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
    /** Natural gap G: half of the distance between the classes' mean margins; with more than two classes, the mean margin of a row's own class. */
    gap: z.number(),
    interval: intervalSchema,
    /** Logit(positive) − logit(negative) of each prompt, in the order of `split.intervened`; with more than two classes, that of its own class less the mean of the others. */
    margins: z.array(z.number()),
    labels: z.array(labelSchema),
    /** Prompts where the margin's sign is the label's; with more than two classes, where it is positive. */
    expressed: share,
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
  structureMatched: separation.optional(),
  naming: z.object({ required: z.boolean(), name: z.string().optional() }),
});

/** How many partners were the row's own pair, of its template, or any of another label. */
export const partnerCounts = z.object({ pair: z.number().int(), template: z.number().int(), any: z.number().int() });

export type Dose = z.infer<typeof dose>;
export type Share = z.infer<typeof share>;
export type Separation = z.infer<typeof separation>;
export type SweepRow = z.infer<typeof sweepRow>;
export type CommonEvidence = z.infer<typeof commonEvidence>;

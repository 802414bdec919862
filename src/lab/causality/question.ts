/** Defines the question that a run of the causality protocol answers: site, direction, data and options, as plain JSON. */

import * as z from 'zod';

export const labelSchema = z.union([z.literal(0), z.literal(1)]);

export const datasetRow = z.object({
  prompt: z.string(),
  label: labelSchema,
  /** Rows of one pair are counterfactuals of each other: the same prompt but for what the label is about. */
  pair: z.string().optional(),
  /** Rows of one template share their wording. */
  template: z.string().optional(),
});

export const siteSchema = z.object({
  layer: z.number().int().nonnegative(),
  place: z.enum(['resid_pre', 'pattern', 'z', 'attn_out', 'mlp_out', 'resid_post']),
  /** Of `z`, where a direction is of the head's own width. Patterns have no directions, and are refused. */
  head: z.number().int().nonnegative().optional(),
  /** Of a prompt's tokens; -1 is the last. The behaviour is always read at the last. */
  position: z.number().int(),
});

export const directionSchema = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('given'),
    vector: z.array(z.number()),
    /** Vectors that span a subspace with it, which is tested as one. */
    others: z.array(z.array(z.number())).max(64).optional(),
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

export const questionSchema = z.object({
  site: siteSchema,
  direction: directionSchema,
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
  /** Random directions that each effect is compared with, exactly. By default 99, and more until the verdict is stable. */
  nulls: z.number().int().min(19).max(20_000).optional(),
  /** Random directions to begin with, where their number is not fixed. */
  fewestNulls: z.number().int().min(1).max(20_000).optional(),
  seed: z.number().int().nonnegative(),
  sweep: z.object({ values: z.array(z.number()).min(1), unit: doseUnit }).optional(),
});

export type DatasetRow = z.infer<typeof datasetRow>;
export type CausalQuestion = z.infer<typeof questionSchema>;

/** Defines the question that a run of the causality protocol answers: site, direction, data and options, as plain JSON. */

import * as z from 'zod';

/** The most classes, and the most dimensions of a subspace. */
export const MOST_CLASSES = 64;

/** The number of a row's class, from 0. */
export const labelSchema = z
  .number()
  .int()
  .min(0)
  .max(MOST_CLASSES - 1);

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
    others: z.array(z.array(z.number())).max(MOST_CLASSES).optional(),
    /** For the record: where it came from. */
    source: z.string().optional(),
    /** Rows of the dataset that it was trained on, by number. They are never tested on. */
    trainedOn: z.array(z.number().int().nonnegative()).optional(),
  }),
  z.object({
    kind: z.literal('fit'),
    /**
     * Difference of means: with more than two classes, the span of the differences between all class means. Interchange: the subspace whose component,
     * swapped between counterfactuals of the discovery half, changes answers most like a swap of everything does.
     */
    method: z.enum(['difference-of-means', 'logistic', 'interchange']),
    /** Of the logistic regression, as scikit-learn has it: the inverse of the penalty's weight. 1 by default. */
    c: z.number().positive().optional(),
    /** Of interchange: the dimensions of the subspace. By default one less than there are classes. */
    rank: z.number().int().min(1).optional(),
  }),
]);

/** Units of a dose: as the residual stream has them, the distance between the class means along the direction, or the mean length of the activation. */
const doseUnit = z.enum(['absolute', 'swing', 'norm']);

const words = z.array(z.string()).min(1);

export const questionSchema = z.object({
  site: siteSchema,
  direction: directionSchema,
  dataset: z.array(datasetRow),
  /** Names of the classes by their numbers, where they have any. */
  classes: z.array(z.string()).optional(),
  /**
   * Words that the model may say next, each one token: of class 1, of class 0, and of the classes after them. Without them: the tokens that tell each class
   * apart best in the discovery half.
   */
  target: z.object({ positive: words, negative: words, others: z.array(words).optional() }).optional(),
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

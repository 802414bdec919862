/** Defines `steer`: what adding a direction does to the next token and to generated text. */

import * as z from 'zod';
import * as fields from './fields.ts';
import { definePrimitive } from './primitive.ts';

const effect = {
  target_token: z.string(),
  target_token_id: z.number(),
  normalization: z.object({
    delta_raw_logit_target: z.number(),
    delta_raw_logit_controls_mean: z.number(),
    /** Of the target, less the mean of the controls. */
    delta_rel: z.number(),
    delta_logprob_target: z.number(),
    n_controls: z.number(),
    /** What is left once one common scale of all logits is taken out. */
    delta_corrected: z.number(),
    temperature: z.number(),
    epiphenomenal_flag: z.boolean(),
  }),
  base_generation: z.string(),
  steered_generation: z.string(),
  flipped: z.boolean(),
  next_token_flipped: z.boolean(),
};

export const steer = definePrimitive({
  name: 'steer',
  title: 'Steer',
  description:
    "Add alpha × a probe's direction to the residual stream, or a head's output, from the last prompt token on, and compare with the model as it is, and with random directions of equal length: logits, generations, damage on neutral text.",
  route: { method: 'POST', path: '/steer' },
  effect: 'reads',
  input: z.object({
    prompt: z.string().optional().describe('Or prompts.'),
    prompts: z.array(z.string()).min(1).max(1000).optional(),
    layer: fields.layer,
    direction_id: z.string().max(300).describe('A probe id, or SAE_ID#FEATURE.'),
    alpha: z.number().describe('Negative: the other way.'),
    alpha_unit: z
      .enum(['absolute', 'swing', 'norm'])
      .default('absolute')
      .describe('Lengths of the direction, distances of the class means, or residual norms.'),
    max_new_tokens: z.number().int().min(0).max(4096).default(32),
    control_tokens: z.array(z.string()).max(1000).optional().describe('Words to measure against.'),
    n_random: z.number().int().min(0).max(1000).default(39).describe('Random directions.'),
    neutral_prompts: z.array(z.string()).min(1).max(1000).optional().describe('Text to leave alone.'),
    seed: fields.seed,
  }),
  output: z.object({
    ...effect,
    direction_id: z.string(),
    layer: fields.shownLayer,
    /** The same dose in all units; a swing is known of a probe that was trained here. */
    alpha: z.object({ absolute: z.number(), swing: z.number().nullable(), norm: z.number() }),
    n_prompts: z.number(),
    mean_delta_rel: z.number(),
    mean_delta_corrected: z.number(),
    flip_rate: z.number(),
    flip_rate_interval: fields.interval,
    random_directions: z
      .object({
        n: z.number(),
        mean_abs_delta_rel: z.number(),
        mean_abs_delta_corrected: z.number(),
        flip_rate: z.number(),
        p: z.number(),
      })
      .nullable(),
    neutral_text: z.object({
      n: z.number(),
      perplexity_ratio: z.number(),
      kl: z.number(),
      random_perplexity_ratio: z.number(),
      random_kl: z.number(),
      is_intact: z.boolean(),
    }),
    /** The fields above for each prompt, if there are several. */
    per_prompt: z.array(z.looseObject({ prompt: z.string() })),
    notes: fields.notes,
    manifest_sha256: fields.manifest,
  }),
});

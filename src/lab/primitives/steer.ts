/** `steer`: what adding a direction does to the next token and to what is generated. */

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
    "Add alpha × a probe's direction to the residual stream from the last prompt token on, and compare with the model as it is: Δrel of the likeliest token, the effect without the common rescaling of logits, generations, damage on neutral text, " +
    'and the same for random directions of equal length, with p.',
  route: { method: 'POST', path: '/steer' },
  effect: 'reads',
  input: z.object({
    prompt: z.string().optional().describe('One prompt; or give prompts.'),
    prompts: z.array(z.string()).min(1).max(1000).optional().describe('Several prompts.'),
    layer: fields.layer.describe('As in capture_acts.'),
    direction_id: z.string().max(300).describe('A probe id, or SAE_ID#FEATURE for a row of its decoder.'),
    alpha: z.number().describe('How much; negative: the other way.'),
    alpha_unit: z
      .enum(['absolute', 'swing', 'norm'])
      .default('absolute')
      .describe(
        "Times the direction as it is, the distance of the class means along it, or the residual stream's norm.",
      ),
    max_new_tokens: z.number().int().min(0).max(4096).default(32).describe('Of each generation.'),
    control_tokens: z.array(z.string()).max(1000).optional().describe('Words that the effect is measured against.'),
    n_random: z.number().int().min(0).max(1000).default(39).describe('Random directions to compare with.'),
    neutral_prompts: z.array(z.string()).min(1).max(1000).optional().describe('Text that steering should leave alone.'),
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

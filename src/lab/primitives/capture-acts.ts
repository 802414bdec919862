/** Defines `capture_acts`: activations of one prompt or thousands, stored on disk. */

import * as z from 'zod';
import * as fields from './fields.ts';
import { definePrimitive } from './primitive.ts';

export const captureActs = definePrimitive({
  name: 'capture_acts',
  title: 'Capture activations',
  description:
    'Run prompts through the model and keep its activations under a capture_id, with labels, pairs (counterfactuals that differ in the label alone) and templates.',
  route: { method: 'POST', path: '/capture' },
  effect: 'keeps',
  input: z.object({
    prompt: z.string().optional().describe('Or prompts.'),
    prompts: fields.prompts.optional(),
    layers: z
      .array(fields.layer)
      .min(1)
      .max(1000)
      .describe(
        'Blocks (residual stream after them; -1: last), or names: blocks.3.hook_mlp_out, blocks.3.attn.hook_z[HEAD], .attn.hook_pattern[HEAD].',
      ),
    positions: z
      .array(fields.position)
      .min(1)
      .max(1000)
      .default(['end_question'])
      .describe('end_question (last token), first_token, an integer, end_question:-2.'),
    labels: fields.labels.optional().describe('0 or 1 a prompt; or 0, 1, 2…, or names.'),
    pair_ids: fields.groups.optional().describe('Its pair, a prompt.'),
    template_ids: fields.groups.optional().describe('Its template, a prompt.'),
  }),
  output: z.object({
    capture_id: z.string(),
    layers: z.array(fields.shownLayer),
    positions: z.array(z.union([z.number(), z.string()])),
    /** Of the first prompt. */
    position_indices: z.array(z.number()),
    /** Of all prompts. */
    n_input_tokens: z.number(),
    n_prompts: z.number(),
    d_model: z.number(),
    /** Of each row: that of the model, of a head, or for patterns the tokens of the longest prompt. */
    width: z.number(),
    manifest_sha256: fields.manifest,
  }),
});

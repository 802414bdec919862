/** Defines `patch_map`: where in the model exchanging or ablating activations changes the answer. */

import * as z from 'zod';
import * as fields from './fields.ts';
import { definePrimitive } from './primitive.ts';

export const patchMap = definePrimitive({
  name: 'patch_map',
  title: 'Patch map',
  description:
    'Which layers, heads and positions does the answer depend on? A map for counterfactual pairs, of half of the data; causality_protocol, with fit and the same seed, tests its best sites on the other half.',
  route: { method: 'POST', path: '/patch-map' },
  effect: 'reads',
  input: z.object({
    capture_id: fields.captureId.describe('Its prompts, labels and pairs.'),
    place: z
      .enum(['resid_pre', 'pattern', 'z', 'attn_out', 'mlp_out', 'resid_post'])
      .default('resid_post')
      .describe('z: output of each head.'),
    method: z
      .enum(['attribution', 'interchange', 'zero', 'mean'])
      .default('attribution')
      .describe('attribution: gradients, torch engine only, fast. The others replace each activation.'),
    layers: z.array(z.number().int()).min(1).max(1000).optional().describe('Default: all.'),
    positions: z.array(fields.position).min(1).max(100).optional().describe('Default: the last 12.'),
    positive_tokens: z.array(z.string()).max(100).optional().describe('As for causality_protocol.'),
    negative_tokens: z.array(z.string()).max(100).optional().describe('For label 0.'),
    max_pairs: z.number().int().min(1).max(1000).default(32).describe('Pairs at most.'),
    top_k: z.number().int().min(1).max(100).default(8).describe('Best sites to tell.'),
    seed: fields.seed,
  }),
  output: z.object({
    /** Shares of the difference between the answers of a pair: 1 is all of it. The layers and positions are arguments of causality_protocol. */
    best: z.array(z.object({ layer: fields.shownLayer, position: z.number(), share: z.number() })),
    picture: z.string(),
    /** Rows × positions; only the strongest rows, in the model's order, where there are many. */
    map: z.object({
      rows: z.array(fields.shownLayer),
      positions: z.array(z.number()),
      /** Of the first prompt. */
      tokens: z.array(z.string()),
      shares: z.array(z.array(z.number())),
    }),
    gap: z.number(),
    target: z.object({ positive: z.array(z.string()), negative: z.array(z.string()) }),
    n_pairs: z.number(),
    notes: fields.notes,
    manifest_sha256: fields.manifest,
  }),
});

/** Defines `sae_lookup`: which features of a sparse autoencoder a capture has, and whether that SAE fits the model. */

import * as z from 'zod';
import * as fields from './fields.ts';
import { definePrimitive } from './primitive.ts';

const feature = z.object({ feature_id: z.number(), activation: z.number(), description: z.string().optional() });

export const saeLookup = definePrimitive({
  name: 'sae_lookup',
  title: 'Look up SAE features',
  description:
    'Encode the rows of a capture with a sparse autoencoder: strongest features by mean and by row, L0, unexplained variance. One that does not fit the model is refused.',
  route: { method: 'POST', path: '/sae-lookup' },
  effect: 'reads',
  input: z.object({
    sae_id: z
      .string()
      .max(4096)
      .describe(
        'demo, a file or folder (SAELens, Gemma/Llama Scope, dictionary_learning, sparsify), or hf://org/repo#path.',
      ),
    capture_id: fields.captureId,
    layer: fields.layer,
    position: fields.position.optional(),
    top_k: z.number().int().min(1).max(1000).default(32).describe('Features.'),
    max_rows: z.number().int().min(0).max(1000).default(8).describe('Rows told one by one.'),
    force: z.boolean().default(false).describe('Even if it does not fit.'),
  }),
  output: z.object({
    sae_id: z.string(),
    format: z.string(),
    d_sae: z.number(),
    n_rows: z.number(),
    top_features: z.array(feature),
    rows: z.array(
      z.object({ row: z.number(), l0: z.number(), fvu: z.number().nullable(), top_features: z.array(feature) }),
    ),
    /** Of the capture's rows. Variance needs two rows at least, and a transcoder has none that it could explain. */
    l0: z.number(),
    fvu: z.number().nullable(),
    /** Of plain text at this layer, tried before the SAE is used. */
    fit_check: z.object({ n_tokens: z.number(), l0: z.number(), fvu: z.number().nullable() }),
    notes: fields.notes,
    manifest_sha256: fields.manifest,
  }),
});

/** Defines `probe_eval`: how well a probe separates the classes of a capture. */

import * as z from 'zod';
import * as fields from './fields.ts';
import { definePrimitive } from './primitive.ts';

export const probeEval = definePrimitive({
  name: 'probe_eval',
  title: 'Evaluate probe',
  description:
    'Score the rows of a capture with a probe; with labels also AUROC, calibration, and what random directions reach. Rows that it was trained on do not count.',
  route: { method: 'POST', path: '/probe' },
  effect: 'reads',
  input: z.object({
    probe_id: z.string().max(200).describe('See list_probes.'),
    capture_id: fields.captureId,
    labels: fields.labels.optional().describe("Default: the capture's."),
    layer: fields.layer.optional(),
    include_training_rows: z.boolean().default(false),
    n_random: z.number().int().min(0).max(10_000).default(199).describe('Random directions.'),
    all_scores: z.boolean().default(false).describe('Even if more than 500.'),
    seed: fields.seed,
  }),
  output: z.object({
    probe_id: z.string(),
    capture_id: z.string(),
    layer: fields.shownLayer,
    /** Rows that were scored. */
    n_samples: z.number(),
    scores: z.array(z.number()),
    mean_score: z.number(),
    auroc: z.number().nullable(),
    auroc_interval: fields.interval,
    /** Rows that AUROC and calibration are of. */
    n_evaluated: z.number(),
    evaluated_rows: z.enum(['all', 'held-out']),
    /** By number, where they are not all. */
    held_out_rows: z.array(z.number()).nullable(),
    calibration: z
      .object({
        brier: z.number(),
        expected_calibration_error: z.number(),
        bins: z.array(
          z.object({ from: z.number(), to: z.number(), n: z.number(), predicted: z.number(), observed: z.number() }),
        ),
      })
      .nullable(),
    random_directions: z
      .object({ n: z.number(), auroc_mean: z.number(), auroc_quantile_95: z.number(), p: z.number() })
      .nullable(),
    notes: fields.notes,
    manifest_sha256: fields.manifest,
  }),
});

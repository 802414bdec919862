/** `train_probe` and `load_probe`: how the lab comes by a direction. */

import * as z from 'zod';
import * as fields from './fields.ts';
import { definePrimitive } from './primitive.ts';

export const trainProbe = definePrimitive({
  name: 'train_probe',
  title: 'Train probe',
  description:
    'Train a linear probe on labelled prompts or on a capture, and test it on rows that training never saw (split by pair, else template, else row). AUROC is of those rows.',
  route: { method: 'POST', path: '/train-probe' },
  effect: 'keeps',
  input: z.object({
    probe_id: fields.identifier.describe('Its name from now on.'),
    prompts: fields.prompts.optional().describe('Prompts to train on; or give capture_id.'),
    capture_id: fields.captureId.optional().describe('From capture_acts.'),
    labels: fields.labels.optional().describe('0 or 1 for each row; default: those of the capture.'),
    layer: fields.layer.describe('As in capture_acts.'),
    position: fields.position.default('end_question').describe('As in capture_acts.'),
    method: z.enum(['logistic', 'difference-of-means']).default('logistic').describe('How the direction is found.'),
    c: z.number().positive().default(1).describe('Inverse strength of regularisation, for logistic.'),
    max_iter: z.number().int().min(1).max(100_000).default(1000).describe('Steps at most, for logistic.'),
    held_out: z.number().min(0).max(0.9).default(0.3).describe('Share of rows for testing.'),
    pair_ids: fields.groups.optional().describe('With prompts: which pair each belongs to.'),
    template_ids: fields.groups.optional().describe('With prompts: which template each was made from.'),
    seed: fields.seed,
  }),
  output: z.object({
    probe: fields.shownProbe,
    capture_id: z.string(),
    n_train: z.number(),
    n_held_out: z.number(),
    auroc: z.number().nullable(),
    auroc_interval: fields.interval,
    train_auroc: z.number(),
    notes: fields.notes,
    manifest_sha256: fields.manifest,
  }),
});

export const loadProbe = definePrimitive({
  name: 'load_probe',
  title: 'Load probe',
  description:
    'Give the lab a probe: as numbers (direction, bias, layer), or from a file: NAME.json beside NAME.safetensors, a .pt file, or hf://org/repo#NAME.',
  route: { method: 'POST', path: '/load-probe' },
  effect: 'keeps',
  input: z.object({
    probe_id: fields.identifier.describe('Its name from now on.'),
    source: z.string().max(4096).optional().describe('Path of the file, or hf://org/repo#NAME.'),
    direction: z.array(z.number()).optional().describe('One number for each of the width of the model.'),
    bias: z.number().optional().describe('Default 0.'),
    layer: fields.layer.optional().describe('As in capture_acts; default: as the file says.'),
    position: fields.position.optional().describe('As in capture_acts.'),
    source_url: z.string().optional().describe('Where it is from.'),
    license: z.string().optional().describe('Under which it may be used.'),
  }),
  output: z.object({
    probe: fields.shownProbe,
    norm: z.number(),
    notes: fields.notes,
    manifest_sha256: fields.manifest,
  }),
});

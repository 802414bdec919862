/** Defines `train_probe` and `load_probe`. */

import * as z from 'zod';
import * as fields from './fields.ts';
import { definePrimitive } from './primitive.ts';

export const trainProbe = definePrimitive({
  name: 'train_probe',
  title: 'Train probe',
  description:
    'Train a linear probe on labelled prompts or a capture, and test it on rows that training never saw (split by pair, else template, else row).',
  route: { method: 'POST', path: '/train-probe' },
  effect: 'keeps',
  input: z.object({
    probe_id: fields.identifier.describe('Its new name.'),
    prompts: fields.prompts.optional().describe('Or capture_id.'),
    capture_id: fields.captureId.optional(),
    labels: fields.labels.optional().describe("Default: the capture's."),
    layer: fields.layer,
    position: fields.position.default('end_question'),
    method: fields.fit.default('logistic'),
    rank: fields.rank,
    class_tokens: z.record(z.string(), fields.words).optional().describe('Next tokens by class.'),
    c: z.number().positive().default(1).describe('Inverse regularisation, for logistic.'),
    max_iter: z.number().int().min(1).max(100_000).default(1000).describe('For logistic.'),
    held_out: z.number().min(0).max(0.9).default(0.3).describe('Share for testing.'),
    pair_ids: fields.groups.optional().describe('With prompts.'),
    template_ids: fields.groups.optional().describe('With prompts.'),
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
  description: 'Give the lab a probe: as numbers (direction, bias, layer), or from a file.',
  route: { method: 'POST', path: '/load-probe' },
  effect: 'keeps',
  input: z.object({
    probe_id: fields.identifier.describe('Its new name.'),
    source: z
      .string()
      .max(4096)
      .optional()
      .describe('NAME.json beside NAME.safetensors, a .pt file, or hf://org/repo#NAME.'),
    direction: z.array(z.number()).optional().describe("Of the model's width."),
    bias: z.number().optional().describe('Default 0.'),
    layer: fields.layer.optional(),
    position: fields.position.optional(),
    source_url: z.string().optional(),
    license: z.string().optional(),
  }),
  output: z.object({
    probe: fields.shownProbe,
    norm: z.number(),
    notes: fields.notes,
    manifest_sha256: fields.manifest,
  }),
});

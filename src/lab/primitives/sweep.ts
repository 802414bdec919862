/** Defines `sweep`: where in the model a concept acts, over layers, positions and directions, as one question. */

import * as z from 'zod';
import * as fields from './fields.ts';
import { definePrimitive } from './primitive.ts';

const matrix = z.array(z.array(z.number()));
const moved = z.object({ value: z.number(), interval: z.array(z.number()) });

export const sweep = definePrimitive({
  name: 'sweep',
  title: 'Sweep over sites',
  description:
    'Where does the model use it? Screens layers × positions × directions as one question, by interchange. Gives a map, and the arguments for causality_protocol at the best sites.',
  route: { method: 'POST', path: '/sweep' },
  effect: 'keeps',
  input: z.object({
    capture_id: fields.captureId,
    layers: z.array(fields.layer).min(1).max(1000).optional().describe('Default: all.'),
    positions: z.array(fields.position).min(1).max(1000).optional().describe("Default: the capture's."),
    fit: fields.fit.optional().describe('At each site; the default.'),
    rank: fields.rank,
    probe_ids: z.array(z.string()).max(100).optional().describe('Each at every site.'),
    positive_tokens: fields.words.optional().describe('As in causality_protocol.'),
    negative_tokens: fields.words.optional().describe('For label 0.'),
    class_tokens: fields.classTokens,
    include_evidence: z.boolean().default(false).describe('All numbers.'),
    seed: fields.seed,
  }),
  output: z.object({
    /** Present, absent or unknown: whether any component moves the behaviour at any site. */
    state: z.string(),
    explanation: z.string(),
    /** The map for a terminal. */
    picture: z.string(),
    /** One map for each direction: a row for each layer, a column for each position. */
    maps: z.array(
      z.object({
        direction: z.string(),
        layers: z.array(fields.shownLayer),
        positions: z.array(z.number()),
        state: z.array(z.array(z.string())),
        interchange: matrix,
        whole_activation: matrix,
        auroc: matrix,
      }),
    ),
    /** The largest effects that are present, and then those that are unknown, each with the arguments for causality_protocol. */
    best: z.array(
      z.object({
        layer: fields.shownLayer,
        position: z.number(),
        direction: z.string(),
        state: z.string(),
        interchange: moved.extend({ p_adjusted: z.number().nullable() }),
        whole_activation: moved,
        auroc: z.number(),
        protocol: z.record(z.string(), z.unknown()),
      }),
    ),
    behaviour_gap: z.number(),
    target: fields.shownTarget,
    n_samples: z.number(),
    /** Which question of this lab session the whole map is, and the error rate that its cells share. */
    family: z.number(),
    multiplicity: z.object({ error_rate: z.number(), level: z.number(), spent: z.number(), cells: z.number() }),
    /** Runs of the model. */
    runs: z.number(),
    /** With its question; only if asked for. */
    record: z.record(z.string(), z.unknown()).optional(),
    /** Where the lab keeps the record. */
    record_file: z.string(),
    notes: fields.notes,
    manifest_sha256: fields.manifest,
  }),
});

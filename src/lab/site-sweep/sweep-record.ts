/** Defines the question, the evidence and the record of a sweep over sites, as plain JSON. The answer is a function of the evidence alone. */

import * as z from 'zod';
import { commonEvidence, intervalSchema as interval, share } from '../causality/common-evidence.ts';
import { datasetRow, directionSchema, questionSchema, siteSchema } from '../causality/question.ts';

const sweepQuestionSchema = z.object({
  /** In the order of the map: position by position within a layer. */
  sites: z.array(siteSchema).min(1),
  /** Each is tested at every site; one that is fitted, is fitted at every site by itself. Names are unique. */
  directions: z.array(z.object({ name: z.string(), direction: directionSchema })).min(1),
  dataset: z.array(datasetRow),
  classes: questionSchema.shape.classes,
  target: questionSchema.shape.target,
  controls: questionSchema.shape.controls,
  seed: questionSchema.shape.seed,
});

/** A part of the behaviour that a swap moves. */
const moved = z.object({ value: z.number(), interval });
/** The share of runs whose temperature cannot be told, and which are left out. */
const untold = z.number();

const cell = z.object({
  site: siteSchema,
  /** The name of the direction. */
  direction: z.string(),
  rank: z.number().int(),
  decodability: z.object({
    auroc: z.number(),
    interval,
    /** By permuted labels of the test half. */
    p: z.number(),
  }),
  /** The whole activation is swapped between counterfactuals: whether anything passes through this site. */
  whole: moved,
  /** The direction's component is swapped. */
  component: moved.extend({ untold }),
  /** Against what is natural along random directions at the site; only where something passes through it. */
  test: z
    .object({
      p: z.number(),
      /** By Holm over the cells of the map that are tested, and so scaled that 0.05 is the level of the whole map. */
      adjusted: z.number(),
      nulls: z.number().int(),
      untold,
      /** Whether more random directions would change no state, with 99 % confidence. */
      stable: z.boolean(),
    })
    .optional(),
});

const sweepEvidenceSchema = commonEvidence
  .pick({ version: true, seed: true, model: true, data: true, split: true, target: true, controls: true })
  .extend({
    format: z.literal(1),
    behaviour: z.object({ gap: z.number(), interval, expressed: share }),
    cells: z.array(cell),
    multiplicity: z.object({
      /** Which question of the lab session the whole map is. */
      question: z.number().int(),
      rate: z.number(),
      level: z.number(),
      spent: z.number(),
      /** Cells that share the level. */
      tests: z.number().int(),
      /** Rows that random directions were run on. */
      rows: z.number().int(),
    }),
    /** Runs of the model, all together. */
    runs: z.number().int(),
  });

const sweepConclusionSchema = z.object({
  /** Of any of the directions at any of the sites. */
  state: z.enum(['present', 'absent', 'unknown']),
  /** The smallest of the map. */
  adjusted: z.number(),
  sentence: z.string(),
  /** Indices of cells: the effects that are present, and then those that are unknown, the largest first. */
  best: z.array(z.number().int()),
});

export const sweepRecordSchema = z.object({
  question: sweepQuestionSchema,
  evidence: sweepEvidenceSchema,
  conclusion: sweepConclusionSchema,
});

export type SweepQuestion = z.infer<typeof sweepQuestionSchema>;
export type SweepCell = z.infer<typeof cell>;
export type SweepEvidence = z.infer<typeof sweepEvidenceSchema>;
export type SweepConclusion = z.infer<typeof sweepConclusionSchema>;
export type SweepRecord = z.infer<typeof sweepRecordSchema>;

/** Defines arguments and fields of answers that several primitives share. Loads no code of the lab, as lists of tools are made from it. */

import * as z from 'zod';

export const layer = z.union([z.number(), z.string()]);
export const position = z.union([z.number(), z.string()]);
/** Numbers of classes, or names. */
export const labels = z.array(z.union([z.number(), z.string()]));
export const words = z.array(z.string()).max(100);
export const fit = z.enum(['difference-of-means', 'logistic', 'interchange']);
export const rank = z.number().int().min(1).optional().describe('For interchange.');
export const classTokens = z.record(z.string(), words).optional().describe('In place of both, by class.');
export const seed = z.number().int().min(0).max(0xffff_ffff).default(0);
export const identifier = z.string().regex(/^[\w.-]{1,100}$/, 'expected letters, digits, _, . and -');
export const captureId = z.string().max(100);

export const prompts = z.array(z.string()).min(1).max(100_000);
export const groups = z.array(z.union([z.string(), z.number()]));

/** Of the answers. */
export const manifest = z.string();
export const interval = z.array(z.number()).nullable();
export const notes = z.array(z.string());
export const shownLayer = z.union([z.number(), z.string()]);

/** Of two classes, and of more or of those with names. */
export const shownTarget = z.object({
  positive: z.array(z.string()).optional(),
  negative: z.array(z.string()).optional(),
  classes: z.record(z.string(), z.array(z.string())).optional(),
  chosen: z.string(),
});

/** Never with its direction. */
export const shownProbe = z.object({
  id: z.string(),
  model_id: z.string(),
  layer: shownLayer,
  position: z.union([z.number(), z.string()]),
  license: z.string().nullable(),
  source_url: z.string().nullable(),
  /** Of a subspace of several dimensions. */
  rank: z.number().optional(),
  training: z.record(z.string(), z.unknown()).nullable(),
});

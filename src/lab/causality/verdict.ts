/** Defines the verdict of a run of the causality protocol, and the record that is kept of question, evidence and verdict. */

import * as z from 'zod';
import { evidenceSchema } from './evidence.ts';
import { firstEvidenceSchema } from './first-edition.ts';
import { questionSchema } from './question.ts';

export const VERDICTS = [
  'causal',
  'weak-causal',
  'epiphenomenal-softmax',
  'epiphenomenal-template',
  'undetermined',
] as const;

const REASONS = [
  'not-decodable',
  'confounded-structural',
  'behaviour-not-expressed',
  'insufficient-nulls',
  'site-locked',
  'temperature-unknown',
  'sufficient-and-necessary',
  'acts-against-label',
  'partial-mediator',
  'redundant-pathway',
  'possible-dormant-pathway',
  'off-manifold-only',
  'unnamed',
  'underpowered',
  'uniform-rescale',
  'direction-inert',
  'effect-not-specific',
] as const;

const verdictSchema = z.object({
  verdict: z.enum(VERDICTS),
  reason: z.enum(REASONS),
  /** One sentence for the record. */
  sentence: z.string(),
  /** The rows of the decision table in their order, down to the one that matched. */
  path: z.array(z.object({ condition: z.string(), matched: z.boolean(), because: z.string() })),
  /** What the verdict does not claim. */
  limits: z.array(z.string()),
  /** What would settle a verdict that was underpowered: pairs of prompts more than there were, and random directions in all. */
  wanted: z.object({ pairs: z.number().optional(), randomDirections: z.number().optional() }).optional(),
});

export const protocolRecordSchema = z.object({
  question: questionSchema,
  evidence: evidenceSchema,
  verdict: verdictSchema,
});

/** A record of any edition, to decide it again. */
export const anyRecordSchema = z.object({
  question: questionSchema,
  evidence: z.discriminatedUnion('format', [evidenceSchema, firstEvidenceSchema]),
  verdict: verdictSchema,
});

export type VerdictName = (typeof VERDICTS)[number];
export type VerdictReason = (typeof REASONS)[number];
export type Verdict = z.infer<typeof verdictSchema>;
export type ProtocolRecord = z.infer<typeof protocolRecordSchema>;

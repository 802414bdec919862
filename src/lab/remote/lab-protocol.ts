/** What a lab elsewhere and its client write to each other beside the primitives: headers, and events as lines of JSON. */

import * as z from 'zod';
import { outputSchema } from '../../interpreters/interpreter.ts';

export const EVENTS = 'application/x-ndjson';

export const HEADERS = {
  /** The client's own name for a call, by which it is found again. */
  id: 'x-request-id',
  /** The number of the last event that the client has. */
  after: 'x-after',
  /** `1`: the call was sent before, and must not be started now. */
  join: 'x-join',
  /** SHA-256 of the weights that the client means. */
  model: 'x-model',
  /** The lab's own name from its start to its end, in every answer: the same lab knows every call that has come to it. */
  instance: 'x-lab-instance',
} as const;

/** At last the answer or an error. One without anything is a sign of life, and has no number. */
export const eventSchema = z.object({
  number: z.number().optional(),
  progress: z.string().optional(),
  output: outputSchema.optional(),
  answer: z.record(z.string(), z.unknown()).optional(),
  error: z.object({ code: z.string(), message: z.string() }).optional(),
});

export type LabCallEvent = z.infer<typeof eventSchema>;

/** Milliseconds; clients take a connection for dead that says nothing for longer than a few of these. */
export const STILL_HERE = 15_000;

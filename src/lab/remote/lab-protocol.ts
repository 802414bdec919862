/** Defines what a lab and its remote clients send each other beside the primitives: headers, and the events of a call as lines of JSON. */

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

/** At last the answer or an error. An event without any field is a heartbeat, and has no number. */
export const labCallEvent = z.object({
  number: z.number().optional(),
  progress: z.string().optional(),
  output: outputSchema.optional(),
  answer: z.record(z.string(), z.unknown()).optional(),
  error: z.object({ code: z.string(), message: z.string() }).optional(),
});

export type LabCallEvent = z.infer<typeof labCallEvent>;

/** Milliseconds between heartbeats; clients take a connection for dead that says nothing for longer than a few of these. */
export const HEARTBEAT = 15_000;

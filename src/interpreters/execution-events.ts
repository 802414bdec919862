/** Defines how an execution and its ending are told over HTTP: the events of a stream, and the fields of an answer. The service writes them, and a remote client reads them. */

import * as z from 'zod';
import { escalation, outputSchema } from './interpreter.ts';

export const OUTCOMES = ['ok', 'error', 'timeout', 'cancelled', 'died'] as const;

export const STREAM_HEADERS = {
  /** The client's own name for a call, by which it is found again, and which runs once. */
  id: 'idempotency-key',
  /** The service's own name from its start to its end, in every answer: the same service knows every id that has come to it. */
  instance: 'x-cuvette-instance',
} as const;

export const endedRun = z.object({
  code: z.number().nullable(),
  signal: z.string().nullable(),
  outcome: z.enum(OUTCOMES).nullable().describe('How it ended, in a word.'),
  reason: z.string().nullable().describe('Why it did not end well, in a word: `timeout`, `oom`, `disk-quota`, …'),
  rung: escalation.nullable().describe('If it was stopped: how far that had to go.'),
  variables_survived: z.boolean(),
  message: z.string().nullable(),
  notes: z.array(z.string()).describe('What `message` says beside the reason, sentence by sentence.'),
  ended_processes: z.array(z.string()).describe('Commands of the processes that ended with the call.'),
  memory: z.number().nullable().describe('Bytes, at the most.'),
  cpu_time: z.number().nullable().describe('Milliseconds.'),
  wall_time: z.number().nullable().describe('Milliseconds.'),
});

export type EndedRun = z.infer<typeof endedRun>;

const [stream, display, result, error] = outputSchema.options;

/** `run` is what this version tells; of an older service, some of its fields are missing. */
export const streamEvent = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('session'),
    session_id: z.string(),
    execution: z.number(),
    /** Whether there was nothing of the session before, or only its files. */
    is_new: z.exactOptional(z.boolean()),
  }),
  stream,
  display.omit({ preview: true, displayId: true }).extend({ display_id: z.exactOptional(z.string()) }),
  result.omit({ preview: true }),
  error,
  z.object({ type: z.literal('done'), run: z.unknown(), error: z.exactOptional(z.string()) }),
]);

export type StreamEvent = z.infer<typeof streamEvent>;

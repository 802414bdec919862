/** Defines what passes over the bridge: one request, as a line of JSON, then the lines of its answer. */

import * as z from 'zod';
import type { ErrorCode } from '../../errors.ts';

/** Whose sessions are meant, where they are not the server's own: those of agents over HTTP, or those if there are any. */
export const whoseSessions = z.enum(['agents', 'agents if any']).optional();
const of = whoseSessions;

export const bridgeRequest = z.discriminatedUnion('do', [
  z.object({
    of,
    do: z.literal('execute'),
    code: z.string(),
    session: z.string().optional(),
    interpreter: z.string().optional(),
    timeout: z.number().min(0).optional(),
  }),
  z.object({ of, do: z.literal('call'), tool: z.string(), input: z.unknown() }),
]);

export type BridgeRequest = z.infer<typeof bridgeRequest>;

export type BridgeEvent =
  | { type: 'started'; session: string; execution: number }
  /** Text for the client's standard output or standard error. */
  | { type: 'text'; to: 'stdout' | 'stderr'; text: string }
  | { type: 'done'; outcome: string; exitCode: number; notes: string[] }
  | { type: 'answer'; text: string; structured: unknown; isError: boolean }
  | { type: 'failed'; code: ErrorCode; message: string };

/** What passes over the bridge: one request, as a line of JSON, then the lines of its answer. */

import type { ErrorCode } from '../../errors.ts';

export type BridgeRequest = {
  /** Whose sessions are meant, where they are not the server's own: those of agents over HTTP, or those if there are any. */
  of?: 'agents' | 'agents if any' | undefined;
} & (
  | {
      do: 'execute';
      code: string;
      session?: string | undefined;
      interpreter?: string | undefined;
      timeout?: number | undefined;
    }
  | { do: 'call'; tool: string; input: unknown }
);

export type BridgeEvent =
  | { type: 'started'; session: string; execution: number }
  /** For standard output or standard error, as its name says. */
  | { type: 'text'; to: 'stdout' | 'stderr'; text: string }
  | { type: 'done'; outcome: string; exitCode: number; notes: string[] }
  | { type: 'answer'; text: string; structured: unknown; isError: boolean }
  | { type: 'failed'; code: ErrorCode; message: string };

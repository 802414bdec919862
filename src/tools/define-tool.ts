/** Defines a tool as a value, which every surface lists, validates and calls in the same way, and the arguments and hints that tools share. */

import * as z from 'zod';
import type { ExecutionOrigin } from '../sessions/execution-record.ts';
import type { Sessions } from '../sessions/sessions.ts';

const session = z.string().max(64).optional().describe('Id or "new"; else default.');
const interpreter = z.string().max(200).default('builtin').describe('See list_interpreters.');

/** Arguments that several tools share. */
export const ARGUMENTS = { session, interpreter };

export const READS = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false };
export const CHANGES = { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false };
export const DESTROYS = { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false };
export const RUNS_CODE = { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true };

export interface ToolContext {
  sessions: Sessions;
  /** The caller's id, where there are several callers. */
  caller?: string | undefined;
  /** By which way the call came in, for the records of executions. */
  origin?: ExecutionOrigin;
  /** Aborted when the caller gives up. */
  signal: AbortSignal;
  /** Sends the caller a message on how far it is; does nothing if the caller did not ask. */
  progress(message: string): void;
}

export interface ToolAnswer {
  text: string;
  structured: Record<string, unknown>;
  images?: { mimeType: string; base64: string }[];
  /** HTML that code showed, for views that can show it; models are not given it. */
  shown?: string[];
  links?: { uri: string; name: string; mimeType: string; description: string }[];
  isError?: boolean;
}

export interface Tool {
  name: string;
  title: string;
  /** Written for a model, and short, because it costs tokens. */
  description: string;
  input: z.ZodObject;
  output: z.ZodObject;
  /** Set for the lab's tools: an `entrance` is always listed, what is `inside` once the lab is used. */
  lab?: 'entrance' | 'inside';
  annotations: { readOnlyHint: boolean; destructiveHint: boolean; idempotentHint: boolean; openWorldHint: boolean };
  handler(args: unknown, context: ToolContext): Promise<ToolAnswer>;
}

/** Ties the handler's arguments to the input schema. `callTool` validates the input before it calls the handler. */
export function defineTool<Input extends z.ZodObject>(
  tool: Omit<Tool, 'input' | 'handler'> & {
    input: Input;
    handler(args: z.infer<Input>, context: ToolContext): Promise<ToolAnswer>;
  },
): Tool {
  return { ...tool, handler: (args, context) => tool.handler(args as z.infer<Input>, context) };
}

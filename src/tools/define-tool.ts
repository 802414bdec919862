/** A tool is a value: every surface lists it, checks its input and calls its handler in the same way. */

import type * as z from 'zod';
import type { Sessions } from '../sessions/sessions.ts';

export interface ToolContext {
  sessions: Sessions;
  /** Who calls, where there are several. */
  caller?: string | undefined;
  /** Aborted when the caller gives up. */
  signal: AbortSignal;
  /** Tells the caller what goes on; does nothing where nobody asked. */
  progress(message: string): void;
}

export interface ToolAnswer {
  text: string;
  structured: Record<string, unknown>;
  images?: { mimeType: string; base64: string }[];
  links?: { uri: string; name: string; mimeType: string; description: string }[];
  isError?: boolean;
}

export interface Tool {
  name: string;
  title: string;
  /** For a model that pays for every word. */
  description: string;
  input: z.ZodObject;
  output: z.ZodObject;
  /** Of the lab: a way in, which is always listed, or what is listed once the lab is asked for. */
  lab?: 'entrance' | 'inside';
  annotations: { readOnlyHint: boolean; destructiveHint: boolean; idempotentHint: boolean; openWorldHint: boolean };
  handler(args: unknown, context: ToolContext): Promise<ToolAnswer>;
}

/** Ties the handler's arguments to the input schema. The caller has checked the input before it calls. */
export function defineTool<Input extends z.ZodObject>(
  tool: Omit<Tool, 'input' | 'handler'> & {
    input: Input;
    handler(args: z.infer<Input>, context: ToolContext): Promise<ToolAnswer>;
  },
): Tool {
  return { ...tool, handler: (args, context) => tool.handler(args as z.infer<Input>, context) };
}

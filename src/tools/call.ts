/** Calls a tool for every surface: validates its input, logs the call, and turns every failure into an answer. */

import * as z from 'zod';
import { CuvetteError, toCuvetteError } from '../errors.ts';
import type { Logger } from '../log.ts';
import type { Tool, ToolAnswer, ToolContext } from './define-tool.ts';
import { refuseUnknownArguments } from './unknown-arguments.ts';

export async function callTool(tool: Tool, input: unknown, context: ToolContext, log: Logger): Promise<ToolAnswer> {
  const start = performance.now();
  try {
    refuseUnknownArguments(tool, input);
    const parsed = tool.input.safeParse(input);
    if (!parsed.success) throw new CuvetteError('invalid_input', z.prettifyError(parsed.error));
    const answer = await tool.handler(parsed.data, context);
    log.debug({ tool: tool.name, ms: performance.now() - start, failed: answer.isError ?? false }, 'tool');
    return answer;
  } catch (error) {
    const known = toCuvetteError(error);
    log[known.code === 'internal' ? 'error' : 'debug']({ tool: tool.name, err: error }, 'tool failed');
    return { text: known.message, structured: { error: { code: known.code, message: known.message } }, isError: true };
  }
}

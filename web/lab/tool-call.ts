/** Calls a tool of the service and tells its progress. Aborting the signal cancels the call. */

import * as z from 'zod/mini';
import type { Api } from '../api/client.ts';
import { eventsOf } from '../api/events.ts';
import { type ToolAnswer, toolAnswerSchema } from '../api/schemas.ts';

const eventSchema = z.union([
  z.object({ type: z.literal('progress'), message: z.string() }),
  z.extend(toolAnswerSchema, { type: z.literal('done') }),
]);

export interface ToolCallOptions {
  signal: AbortSignal;
  onProgress?(message: string): void;
}

export async function callTool(
  api: Api,
  name: string,
  args: Record<string, unknown>,
  { signal, onProgress }: ToolCallOptions,
): Promise<ToolAnswer> {
  const init = { headers: { accept: 'text/event-stream' }, signal };
  const response = await api.post(api.url(`tools/${encodeURIComponent(name)}`), { arguments: args }, init);
  if (!response.headers.get('content-type')?.includes('event-stream'))
    return toolAnswerSchema.parse(await response.json());
  for await (const { data } of eventsOf(response)) {
    const event = eventSchema.parse(JSON.parse(data));
    if (event.type === 'done') return event;
    onProgress?.(event.message);
  }
  throw new Error(`The connection ended before ${name} answered. Look at the server's log, or run it again.`);
}

/** What a tool found; what went wrong is thrown. */
export async function findingsOf(api: Api, name: string, args: Record<string, unknown>, options: ToolCallOptions) {
  const answer = await callTool(api, name, args, options);
  if (answer.is_error) throw new Error(answer.text);
  return answer.structured ?? {};
}

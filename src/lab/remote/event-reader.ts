/** Reads the lines of an answer's body as they come, and events of those that are JSON. Server-sent events are parsed by `server-sent-events.ts`. */

import type { ReadableStream } from 'node:stream/web';
import type { ServerSentEvent } from '../../server-sent-events.ts';

export async function* readJsonLines(lines: AsyncIterable<string>): AsyncGenerator<ServerSentEvent> {
  for await (const line of lines) if (line.trim() !== '') yield { id: '', data: line };
}

/** `onBytes`: whenever anything comes, a heartbeat too. */
export async function* linesIn(body: NonNullable<Response['body']>, onBytes: () => void): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let pieces: string[] = [];
  for await (const chunk of body as ReadableStream<Uint8Array>) {
    onBytes();
    const [first = '', ...others] = decoder.decode(chunk, { stream: true }).split('\n');
    pieces.push(first);
    for (const other of others) {
      yield pieces.join('').replace(/\r$/, '');
      pieces = [other];
    }
  }
}

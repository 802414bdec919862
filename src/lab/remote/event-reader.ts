/** Reads events from the body of an answer, as they come: server-sent events, or lines of JSON. */

import type { ReadableStream } from 'node:stream/web';

export interface RemoteEvent {
  /** Empty where the format has none. */
  id: string;
  data: string;
}

/** Ends where the connection does; half an event is none. */
export async function* readServerSentEvents(lines: AsyncIterable<string>): AsyncGenerator<RemoteEvent> {
  let id = '';
  let data: string[] = [];
  for await (const line of lines) {
    const [, field, value = ''] = /^(id|data): ?(.*)$/s.exec(line) ?? [];
    if (field === 'id') id = value;
    if (field === 'data') data.push(value);
    if (line !== '') continue;
    if (data.length > 0) yield { id, data: data.join('\n') };
    id = '';
    data = [];
  }
}

export async function* readJsonLines(lines: AsyncIterable<string>): AsyncGenerator<RemoteEvent> {
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

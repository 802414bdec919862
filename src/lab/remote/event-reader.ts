/** Reads server-sent events from the body of an answer: the id and the data of each. Comments only show that the other side lives. */

import type { ReadableStream } from 'node:stream/web';

export interface ServerSentEvent {
  id: string;
  data: string;
}

export async function* eventsIn(
  body: NonNullable<Response['body']>,
  onBytes: () => void,
): AsyncGenerator<ServerSentEvent> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of body as ReadableStream<Uint8Array>) {
    onBytes();
    const blocks = (rest + decoder.decode(chunk, { stream: true })).split(/\r?\n\r?\n/);
    rest = blocks.pop() ?? '';
    for (const block of blocks) {
      const lines = block.split(/\r?\n/);
      const data = valuesOf(lines, 'data').join('\n');
      if (data !== '') yield { id: valuesOf(lines, 'id').at(-1) ?? '', data };
    }
  }
}

function valuesOf(lines: string[], field: string): string[] {
  return lines.flatMap((line) =>
    line.startsWith(`${field}:`) ? [line.slice(field.length + 1).replace(/^ /, '')] : [],
  );
}

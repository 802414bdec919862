/** The events of a call to a lab elsewhere, as they come over the connection. */

import type { ReadableStream } from 'node:stream/web';
import { eventSchema, type LabCallEvent } from './lab-protocol.ts';
import { lostBy, notALab } from './remote-errors.ts';

/** Ends without a word where the connection does: half a line is none. */
export async function* eventsOf(body: ReadableStream<Uint8Array>, endpoint: string): AsyncGenerator<LabCallEvent> {
  const chunks = body.pipeThrough(new TextDecoderStream())[Symbol.asyncIterator]();
  let pieces: string[] = [];
  for (;;) {
    const { value, done } = await chunks.next().catch((error: unknown) => {
      throw lostBy(error);
    });
    if (done) return;
    const [first = '', ...others] = value.split('\n');
    pieces.push(first);
    for (const other of others) {
      const line = pieces.join('');
      pieces = [other];
      if (line.trim() !== '') yield parse(line, endpoint);
    }
  }
}

function parse(line: string, endpoint: string): LabCallEvent {
  try {
    return eventSchema.parse(JSON.parse(line));
  } catch (error) {
    throw notALab(endpoint, `one of its lines is no event (${line.slice(0, 80)})`, error);
  }
}

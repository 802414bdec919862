/** Parses server-sent events from the lines of a stream. It runs in Node and in the page alike; where the lines come from is the caller's. */

export interface ServerSentEvent {
  /** Empty where the event has none. */
  id: string;
  data: string;
}

/** Ends where the lines do; half an event is none. */
export async function* readServerSentEvents(lines: AsyncIterable<string>): AsyncGenerator<ServerSentEvent> {
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

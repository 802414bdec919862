/** Reads the events of the workbench in tests, and tells what they say. */

import { waitFor } from './harness.ts';
import type { EventStream } from './http/service.ts';

// biome-ignore lint/suspicious/noExplicitAny: a test says what it expects of an event
type Told = any;

/** The first event of which this holds. */
export function told(stream: EventStream, holds: (event: Told) => boolean): Promise<Told> {
  return waitFor(`an event like ${holds}`, () => stream.events.find(holds));
}

export const isDone = (number: number) => (event: Told) =>
  event.type === 'execution' && event.execution.number === number && event.execution.state === 'done';

/** The text of an execution as far as a reader was told it, by offset; null if something is missing before what it was told last. */
export function textTold(stream: EventStream, number: number): string | null {
  let text = '';
  for (const event of stream.events as Told[]) {
    if (event.type === 'snapshot') {
      const known = event.executions.find((one: Told) => one.number === number);
      text = known ? known.outputs.map((output: Told) => output.text ?? '').join('') : '';
    }
    if (event.type !== 'output' || event.execution !== number) continue;
    if (event.offset !== text.length) return null;
    text += event.output.text;
  }
  return text;
}

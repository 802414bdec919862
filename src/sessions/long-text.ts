/** Defines text that may be too long for memory: a string while it is short, and else a reader of what was spilled to the disk. */

export interface LongText {
  /** The text as the inside of a JSON string, piece by piece, as often as one asks. */
  escaped(): AsyncIterable<string | Uint8Array>;
  /** Whether it ends with the end of a line. */
  readonly endsLine: boolean;
}

export type Text = string | LongText;

export function isLong(value: unknown): value is LongText {
  return typeof value === 'object' && value !== null && 'escaped' in value && typeof value.escaped === 'function';
}

export function endsLine(text: Text): boolean {
  return isLong(text) ? text.endsLine : text === '' || text.endsWith('\n');
}

/** One text after the other. */
export function joinTexts(first: Text, second: Text): Text {
  if (!isLong(first) && !isLong(second)) return first + second;
  if (second === '') return first;
  return {
    async *escaped() {
      yield* escapedOf(first);
      yield* escapedOf(second);
    },
    endsLine: endsLine(second),
  };
}

/** Without the quotes. */
export function escapeText(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

async function* escapedOf(text: Text): AsyncGenerator<string | Uint8Array> {
  if (isLong(text)) yield* text.escaped();
  else yield escapeText(text);
}

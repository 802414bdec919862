/** Chooses which representation of a rich output is shown: the richest that the page can draw. */

import type { RichOutput } from '../api/schemas.ts';

export type Representation = { type: string; kind: Kind; size: number; value: unknown };
export type Kind = 'html' | 'markdown' | 'latex' | 'image' | 'json' | 'text';

const KINDS: readonly [string, Kind][] = [
  ['text/html', 'html'],
  ['text/markdown', 'markdown'],
  ['image/svg+xml', 'image'],
  ['text/latex', 'latex'],
  ['image/png', 'image'],
  ['image/jpeg', 'image'],
  ['image/gif', 'image'],
  ['image/webp', 'image'],
  ['application/json', 'json'],
  ['text/plain', 'text'],
];

/** `value` is undefined where it has to be fetched. */
export function chooseRepresentation({ data, large = {} }: RichOutput): Representation | undefined {
  for (const [type, kind] of KINDS) {
    if (Object.hasOwn(data, type)) return { type, kind, value: data[type], size: sizeOf(data[type]) };
    if (Object.hasOwn(large, type)) return { type, kind, value: undefined, size: large[type] ?? 0 };
  }
  return undefined;
}

/** Notebooks write long text as a list of lines. */
export function asText(value: unknown): string {
  if (Array.isArray(value)) return value.map(String).join('');
  return typeof value === 'string' ? value : JSON.stringify(value, undefined, 2);
}

function sizeOf(value: unknown): number {
  return typeof value === 'string' ? value.length : JSON.stringify(value ?? null).length;
}

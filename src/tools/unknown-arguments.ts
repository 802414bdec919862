/** Refuses arguments that a tool does not have, by name: one that was mistyped must not be dropped without a word. */

import { CuvetteError } from '../errors.ts';
import type { Tool } from './define-tool.ts';

/** Letters that may differ for a name to be taken for a slip of another. */
const NEAR = 2;

export function refuseUnknownArguments({ name: tool, input }: Pick<Tool, 'name' | 'input'>, given: unknown): void {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return;
  const known = Object.keys(input.shape);
  // What begins with an underscore, as _meta does, is a client's own addition.
  const unknown = Object.keys(given).filter((name) => !known.includes(name) && !name.startsWith('_'));
  if (unknown.length === 0) return;
  const sentences = unknown.map((name) => {
    const meant = nearest(name, known);
    return meant ? `Unknown argument ${name}; did you mean ${meant}?` : `Unknown argument ${name}.`;
  });
  const there = known.length > 0 ? `${tool} takes: ${known.join(', ')}.` : `${tool} takes none.`;
  throw new CuvetteError('invalid_input', `${sentences.join(' ')} ${there}`);
}

function nearest(name: string, known: string[]): string | undefined {
  const byDistance = known
    .map((candidate) => ({ candidate, distance: editDistance(name.toLowerCase(), candidate) }))
    .sort((a, b) => a.distance - b.distance);
  const [best] = byDistance;
  // Of a short word, two other letters make another word.
  return best && best.distance <= Math.min(NEAR, Math.floor(best.candidate.length / 2)) ? best.candidate : undefined;
}

/** Insertions, deletions, replacements and swaps of neighbours that make one word of the other. */
function editDistance(one: string, other: string): number {
  const long = Math.abs(one.length - other.length);
  if (long > NEAR) return long;
  const rows: number[][] = [Array.from({ length: other.length + 1 }, (_, column) => column)];
  for (let i = 1; i <= one.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= other.length; j += 1) {
      const above = rows[i - 1] ?? [];
      const isSame = one[i - 1] === other[j - 1];
      const isSwap = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      row[j] = Math.min(
        at(above, j) + 1,
        at(row, j - 1) + 1,
        at(above, j - 1) + (isSame ? 0 : 1),
        isSwap ? at(rows[i - 2], j - 2) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    rows[i] = row;
  }
  return at(rows[one.length], other.length);
}

function at(row: number[] | undefined, column: number): number {
  return row?.[column] ?? Number.POSITIVE_INFINITY;
}

/** Finds the known name that a mistyped one was probably meant to be, by edit distance. */

/** Letters that may differ. */
const NEAR = 2;

export function nearestName(name: string, known: readonly string[]): string | undefined {
  const [best] = known
    .map((candidate) => ({ candidate, distance: editDistance(name.toLowerCase(), candidate.toLowerCase()) }))
    .sort((a, b) => a.distance - b.distance);
  // Two other letters make another word of a short one.
  return best && best.distance <= Math.min(NEAR, Math.floor(best.candidate.length / 2)) ? best.candidate : undefined;
}

/** Counts the insertions, deletions, replacements and swaps of neighbours that turn one word into the other. */
function editDistance(one: string, other: string): number {
  const long = Math.abs(one.length - other.length);
  if (long > NEAR) return long;
  const rows: number[][] = [Array.from({ length: other.length + 1 }, (_, column) => column)];
  for (let i = 1; i <= one.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= other.length; j += 1) {
      const above = rows[i - 1];
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

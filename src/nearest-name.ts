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

/** Counts the insertions, deletions, replacements and swaps of neighbours between two words; Infinity if more than `limit`. */
function editDistance(one: string, other: string, limit = NEAR): number {
  if (limit < 0 || Math.abs(one.length - other.length) > limit) return Number.POSITIVE_INFINITY;
  if (one === '' || other === '') return one.length + other.length;
  const [rest, otherRest] = [one.slice(1), other.slice(1)];
  if (one[0] === other[0]) return editDistance(rest, otherRest, limit);
  const isSwap = one[0] === other[1] && one[1] === other[0];
  const pairs = [
    [rest, other],
    [one, otherRest],
    [rest, otherRest],
    ...(isSwap ? [[one.slice(2), other.slice(2)]] : []),
  ];
  return 1 + Math.min(...pairs.map(([left = '', right = '']) => editDistance(left, right, limit - 1)));
}

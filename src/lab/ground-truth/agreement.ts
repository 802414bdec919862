/** Whether two engines have come to the same evidence: words to the letter, numbers as far as float32 carries. */

/** How far apart the numbers of two engines may be. */
export const CLOSE = 1e-4;

/**
 * One draw of a null distribution: two rows that are all but level along a random direction may change places by rounding, which moves an AUROC by
 * a whole step. What is made of all draws is compared.
 */
export const SINGLE_DRAW = /\.null\.\d+$/;
/** Of activations, which differ in their last bits. */
export const HASH = /\.hash$/;

export interface Tolerance {
  /** Paths that are of no account. */
  ignored?: readonly RegExp[];
  /** Numbers above 1 may differ by as much of themselves: float32 has seven digits, wherever the point is. */
  isRelative?: boolean;
}

/** Where the two differ, by path. Empty if they agree. */
export function disagreements(
  ours: unknown,
  theirs: unknown,
  { ignored = [], isRelative = false }: Tolerance = {},
): string[] {
  const [found, expected] = [leaves(ours), leaves(theirs)];
  return [...new Set([...found.keys(), ...expected.keys()])]
    .filter(
      (path) => !ignored.some((one) => one.test(path)) && !isSame(found.get(path), expected.get(path), isRelative),
    )
    .map((path) => `${path}: ${String(found.get(path))} for ${String(expected.get(path))}`);
}

function isSame(one: unknown, other: unknown, isRelative: boolean): boolean {
  if (Object.is(one, other)) return true;
  if (typeof one !== 'number' || typeof other !== 'number') return false;
  return Math.abs(one - other) < CLOSE * (isRelative ? Math.max(1, Math.abs(other)) : 1);
}

/** Everything in a value that is no object itself, by its path. */
function leaves(value: unknown, path = ''): Map<string, unknown> {
  if (typeof value !== 'object' || value === null) return new Map([[path, value]]);
  return new Map(Object.entries(value).flatMap(([key, part]) => [...leaves(part, `${path}.${key}`)]));
}

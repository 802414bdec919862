/** Compares the evidence of two engines: texts must be equal, numbers as far as float32 carries. */

/** How far apart the numbers of two engines may be. */
export const CLOSE = 1e-4;

/** Of activations, which differ in their last bits. */
export const HASH = /\.hash$/;

export interface Tolerance {
  /** Paths that are of no account. */
  ignored?: readonly RegExp[];
  /** Numbers beyond 10 may differ by as much in their sixth digit: float32 has seven, wherever the point is. */
  byDigits?: boolean;
}

/** Where the two differ, by path. Empty if they agree. */
export function disagreements(
  ours: unknown,
  theirs: unknown,
  { ignored = [], byDigits = false }: Tolerance = {},
): string[] {
  const [found, expected] = [leaves(ours), leaves(theirs)];
  return [...new Set([...found.keys(), ...expected.keys()])]
    .filter((path) => !ignored.some((one) => one.test(path)) && !isSame(found.get(path), expected.get(path), byDigits))
    .map((path) => `${path}: ${String(found.get(path))} for ${String(expected.get(path))}`);
}

function isSame(one: unknown, other: unknown, byDigits: boolean): boolean {
  if (Object.is(one, other)) return true;
  if (typeof one !== 'number' || typeof other !== 'number') return false;
  return Math.abs(one - other) < CLOSE * (byDigits ? Math.max(1, Math.abs(other) / 10) : 1);
}

/** Everything in a value that is no object itself, by its path. */
function leaves(value: unknown, path = ''): Map<string, unknown> {
  if (typeof value !== 'object' || value === null) return new Map([[path, value]]);
  return new Map(Object.entries(value).flatMap(([key, part]) => [...leaves(part, `${path}.${key}`)]));
}

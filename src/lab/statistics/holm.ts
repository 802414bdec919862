/** Correction for several tests. */

/**
 * Adjusted p values by Holm's method, in the order given. With more tests in the family than p values, the others are taken to
 * have larger ones, which is never in favour of those given.
 */
export function holm(values: readonly number[], tests = values.length): number[] {
  const order = values.map((_, i) => i).sort((a, b) => (values[a] ?? 1) - (values[b] ?? 1));
  const adjusted = values.map(() => 1);
  let largest = 0;
  order.forEach((index, rank) => {
    largest = Math.max(largest, Math.min(1, (tests - rank) * (values[index] ?? 1)));
    adjusted[index] = largest;
  });
  return adjusted;
}

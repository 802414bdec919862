/** Adjusts p values for multiple tests by Holm's method. */

/**
 * Adjusted p values by Holm's method, in the order given. With more tests in the family than p values, the others are taken to
 * have larger ones, which is never in favour of those given.
 */
export function holm(values: readonly number[], tests = values.length): number[] {
  const order = [...values.entries()].sort(([, a], [, b]) => a - b);
  const adjusted = values.map(() => 1);
  let largest = 0;
  order.forEach(([index, value], rank) => {
    largest = Math.max(largest, Math.min(1, (tests - rank) * value));
    adjusted[index] = largest;
  });
  return adjusted;
}

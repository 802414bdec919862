/** Mean, deviation, quantiles. */

export function mean(values: ArrayLike<number>): number {
  return sum(values) / values.length;
}

export function sum(values: ArrayLike<number>): number {
  let total = 0;
  for (let i = 0; i < values.length; i++) total += values[i] ?? 0;
  return total;
}

/** Of the values as a whole; with `degrees` 1, as an estimate from a sample. */
export function standardDeviation(values: ArrayLike<number>, degrees: 0 | 1 = 0): number {
  const centre = mean(values);
  let total = 0;
  for (let i = 0; i < values.length; i++) total += ((values[i] ?? 0) - centre) ** 2;
  return Math.sqrt(total / (values.length - degrees));
}

/** With linear interpolation between neighbours, as numpy does by default. */
export function quantile(values: ArrayLike<number>, share: number): number {
  const sorted = Float64Array.from(values).sort();
  const place = (sorted.length - 1) * share;
  const low = Math.floor(place);
  const below = sorted[low] ?? Number.NaN;
  const above = sorted[Math.min(low + 1, sorted.length - 1)] ?? Number.NaN;
  return below + (place - low) * (above - below);
}

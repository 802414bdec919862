/** Fits the slope of a line so that a few points that lie elsewhere hardly count: Huber's regression, begun from a median of slopes. */

import { missing } from '../core/missing.ts';

/** In units of the residuals' spread: what lies farther counts less. The usual choice, which loses 5 % where residuals are normal. */
const BEND = 1.345;
const STEPS = 4;
/** The median of absolute residuals of a normal distribution, in standard deviations. */
const MEDIAN_DEVIATION = 0.6745;
/** What float32 resolves, as a share of the largest number: residuals cannot be told to be smaller. */
const FLOAT32 = 1e-7;

export interface RobustSlope {
  /** NaN where all x are equal. */
  slope: number;
  /** Its standard error. */
  error: number;
}

/** For many y to the same x. */
export function robustSlopes(x: ArrayLike<number>): (y: ArrayLike<number>) => RobustSlope {
  const count = x.length;
  const xs = Float64Array.from(x);
  const order = [...xs.keys()].sort((a, b) => at(xs, a) - at(xs, b));
  const half = count >> 1;
  const far = order
    .slice(0, half)
    .map((low, rank) => ({ low, high: order[rank + count - half] ?? missing('point of rank', rank) }))
    .map(({ low, high }) => ({ low, high, width: at(xs, high) - at(xs, low) }))
    .filter(({ width }) => width > 0);
  const slopes = new Float64Array(far.length);
  const [ys, offsets, sizes] = [new Float64Array(count), new Float64Array(count), new Float64Array(count)];
  if (far.length === 0) return () => ({ slope: Number.NaN, error: Number.NaN });

  return (y) => {
    // Whatever kind of array they come in: V8 is fast where it meets one kind only.
    for (let i = 0; i < count; i++) ys[i] = at(y, i);
    far.forEach(({ low, high, width }, i) => {
      slopes[i] = (at(ys, high) - at(ys, low)) / width;
    });
    let slope = median(slopes);
    for (let i = 0; i < count; i++) offsets[i] = at(ys, i) - slope * at(xs, i);
    let intercept = median(offsets);
    let largest = 0;
    for (let i = 0; i < count; i++) largest = Math.max(largest, Math.abs(at(ys, i)));
    const finest = FLOAT32 * largest || Number.MIN_VALUE;
    for (let i = 0; i < count; i++) sizes[i] = Math.abs(at(ys, i) - intercept - slope * at(xs, i));
    const spread = Math.max(median(sizes) / MEDIAN_DEVIATION, finest);
    let information = 0;
    for (let step = 0; step < STEPS; step++) {
      let [weights, sumX, sumY] = [0, 0, 0];
      for (let i = 0; i < count; i++) {
        const weight = weightOf(at(ys, i) - intercept - slope * at(xs, i), spread);
        sizes[i] = weight;
        weights += weight;
        sumX += weight * at(xs, i);
        sumY += weight * at(ys, i);
      }
      const [meanX, meanY] = [sumX / weights, sumY / weights];
      let [xx, xy] = [0, 0];
      for (let i = 0; i < count; i++) {
        const dx = at(xs, i) - meanX;
        xx += at(sizes, i) * dx * dx;
        xy += at(sizes, i) * dx * (at(ys, i) - meanY);
      }
      if (!(xx > 0)) break;
      information = xx;
      slope = xy / xx;
      intercept = meanY - slope * meanX;
    }
    return { slope, error: information > 0 ? spread / Math.sqrt(information) : Number.NaN };
  };
}

function weightOf(residual: number, spread: number): number {
  const size = Math.abs(residual);
  if (size <= BEND * spread) return 1;
  return (BEND * spread) / size;
}

/** Sorts the values. */
function median(values: Float64Array): number {
  values.sort();
  const middle = values.length >> 1;
  return values.length % 2 === 1 ? at(values, middle) : (at(values, middle - 1) + at(values, middle)) / 2;
}

function at(values: ArrayLike<number>, index: number): number {
  return values[index] ?? missing('point', index);
}

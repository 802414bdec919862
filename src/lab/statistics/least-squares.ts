/** Fits a straight line by ordinary least squares. */

import { missing } from '../core/missing.ts';

export interface Line {
  slope: number;
  intercept: number;
  /** The share of the variance of y that the line explains. */
  explained: number;
}

/** Ordinary least squares of y on x. Where all x are equal, the slope is NaN. */
export function leastSquares(x: ArrayLike<number>, y: ArrayLike<number>): Line {
  const count = x.length;
  let sumX = 0;
  let sumY = 0;
  for (let i = 0; i < count; i++) {
    sumX += x[i] ?? missing('x of point', i);
    sumY += y[i] ?? missing('y of point', i);
  }
  const meanX = sumX / count;
  const meanY = sumY / count;
  let xx = 0;
  let xy = 0;
  let yy = 0;
  for (let i = 0; i < count; i++) {
    const dx = (x[i] ?? missing('x of point', i)) - meanX;
    const dy = (y[i] ?? missing('y of point', i)) - meanY;
    xx += dx * dx;
    xy += dx * dy;
    yy += dy * dy;
  }
  const slope = xx === 0 ? Number.NaN : xy / xx;
  return { slope, intercept: meanY - slope * meanX, explained: yy === 0 ? 1 : (xy * xy) / (xx * yy) };
}

/** Layer norm and RMS norm of rows. Sums are made in double precision. */

import { endRow, field, firstRow, numberField } from './operation';
import { loadSome, storeSome, sumOfPairs, upper } from './vector';

/** Fields: from, its stride, to, its stride, rows, width, weight, bias or 0, epsilon, whether the mean is taken off, the rows' addresses or 0. */
export function normalize(operation: usize, item: i32): void {
  const width = <i32>field(operation, 5);
  const addresses = field(operation, 10);
  const end = endRow(item, <i32>field(operation, 4));
  for (let row = firstRow(item); row < end; row++) {
    const from = addresses
      ? <usize>load<u32>(addresses + (<usize>row << 2))
      : field(operation, 0) + <usize>row * field(operation, 1);
    const to = field(operation, 2) + <usize>row * field(operation, 3);
    if (field(operation, 9)) normalizeLayer(from, to, width, field(operation, 6), field(operation, 7), numberField(operation, 8));
    else normalizeRms(from, to, width, field(operation, 6), numberField(operation, 8));
  }
}

export function normalizeRms(from: usize, to: usize, width: i32, weight: usize, epsilon: f32): void {
  const scale = f32x4.splat(<f32>(1 / Math.sqrt(squares(from, width, 0) / <f64>width + <f64>epsilon)));
  for (let i = 0; i < width; i += 4) {
    const at = <usize>i << 2;
    const x = f32x4.mul(loadSome(from + at, width - i), scale);
    storeSome(to + at, f32x4.mul(x, loadSome(weight + at, width - i)), width - i);
  }
}

export function normalizeLayer(from: usize, to: usize, width: i32, weight: usize, bias: usize, epsilon: f32): void {
  const mean = sum(from, width) / <f64>width;
  const shift = f32x4.splat(<f32>mean);
  const scale = f32x4.splat(<f32>(1 / Math.sqrt(squares(from, width, mean) / <f64>width + <f64>epsilon)));
  for (let i = 0; i < width; i += 4) {
    const at = <usize>i << 2;
    const x = f32x4.mul(f32x4.sub(loadSome(from + at, width - i), shift), scale);
    let y = f32x4.mul(x, loadSome(weight + at, width - i));
    if (bias) y = f32x4.add(y, loadSome(bias + at, width - i));
    storeSome(to + at, y, width - i);
  }
}

function sum(from: usize, width: i32): f64 {
  let low = f64x2.splat(0);
  let high = f64x2.splat(0);
  const whole = width & ~3;
  for (let i = 0; i < whole; i += 4) {
    const x = v128.load(from + (<usize>i << 2));
    low = f64x2.add(low, f64x2.promote_low_f32x4(x));
    high = f64x2.add(high, f64x2.promote_low_f32x4(upper(x)));
  }
  let rest: f64 = 0;
  for (let i = whole; i < width; i++) rest += <f64>load<f32>(from + (<usize>i << 2));
  return sumOfPairs(f64x2.add(low, high)) + rest;
}

/** The sum of squares of what is left when the mean is taken off. */
function squares(from: usize, width: i32, mean: f64): f64 {
  const shift = f64x2.splat(mean);
  let low = f64x2.splat(0);
  let high = f64x2.splat(0);
  const whole = width & ~3;
  for (let i = 0; i < whole; i += 4) {
    const x = v128.load(from + (<usize>i << 2));
    const x0 = f64x2.sub(f64x2.promote_low_f32x4(x), shift);
    const x1 = f64x2.sub(f64x2.promote_low_f32x4(upper(x)), shift);
    low = f64x2.add(low, f64x2.mul(x0, x0));
    high = f64x2.add(high, f64x2.mul(x1, x1));
  }
  let rest: f64 = 0;
  for (let i = whole; i < width; i++) {
    const x = <f64>load<f32>(from + (<usize>i << 2)) - mean;
    rest += x * x;
  }
  return sumOfPairs(f64x2.add(low, high)) + rest;
}

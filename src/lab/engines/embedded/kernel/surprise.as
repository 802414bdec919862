/** How likely tokens are, and how far two predictions are apart. Sums and logarithms are made in double precision. */

import { endRow, field, firstRow } from './operation';
import { exponential, highest, loadSome, sumOfPairs, upper } from './vector';

/** Fields: logits, stride, rows, vocabulary, for each row a double: the logarithm of the sum of all exponentials. */
export function measureLogits(operation: usize, item: i32): void {
  const vocabulary = <i32>field(operation, 3);
  const end = endRow(item, <i32>field(operation, 2));
  for (let row = firstRow(item); row < end; row++) {
    const logits = field(operation, 0) + <usize>row * field(operation, 1);
    store<f64>(field(operation, 4) + (<usize>row << 3), logOfSum(logits, vocabulary));
  }
}

/**
 * Fields: logits, stride, rows, vocabulary, the logarithms of `measureLogits`; the same of the base: its logits, and its logarithms; for each row the
 * number of its row in the base; for each row a double: the divergence from the base.
 */
export function compareLogits(operation: usize, item: i32): void {
  const stride = field(operation, 1);
  const vocabulary = <i32>field(operation, 3);
  const end = endRow(item, <i32>field(operation, 2));
  for (let row = firstRow(item); row < end; row++) {
    const baseRow = <usize>load<u32>(field(operation, 7) + (<usize>row << 2));
    const logits = field(operation, 0) + <usize>row * stride;
    const base = field(operation, 5) + baseRow * stride;
    const log = load<f64>(field(operation, 4) + (<usize>row << 3));
    const baseLog = load<f64>(field(operation, 6) + (baseRow << 3));
    store<f64>(field(operation, 8) + (<usize>row << 3), divergence(base, baseLog, logits, log, vocabulary));
  }
}

function logOfSum(logits: usize, count: i32): f64 {
  const top = highest(logits, count);
  const shift = f32x4.splat(top);
  let total = f64x2.splat(0);
  const whole = count & ~3;
  for (let i = 0; i < whole; i += 4) {
    const x = exponential(f32x4.sub(v128.load(logits + (<usize>i << 2)), shift));
    total = f64x2.add(total, f64x2.promote_low_f32x4(x));
    total = f64x2.add(total, f64x2.promote_low_f32x4(upper(x)));
  }
  let rest: f64 = 0;
  for (let i = whole; i < count; i++) {
    const x = f32x4.sub(v128.load_splat<f32>(logits + (<usize>i << 2)), shift);
    rest += <f64>f32x4.extract_lane(exponential(x), 0);
  }
  return <f64>top + logarithm(sumOfPairs(total) + rest);
}

function divergence(base: usize, baseLog: f64, logits: usize, log: f64, count: i32): f64 {
  const shift = f32x4.splat(<f32>baseLog);
  // What the single-precision shift is off by is made good at the end, for all terms at once. It is so small that two terms will do.
  const off = <f64>(<f32>baseLog) - baseLog;
  const correction = 1 + off + (off * off) / 2;
  const offset = f64x2.splat(log - baseLog);
  let total = f64x2.splat(0);
  for (let i = 0; i < count; i += 4) {
    const left = count - i;
    const at = <usize>i << 2;
    const x = loadSome(base + at, left);
    const y = loadSome(logits + at, left);
    const p = exponential(f32x4.sub(x, shift));
    const low = f64x2.sub(f64x2.promote_low_f32x4(x), f64x2.promote_low_f32x4(y));
    const high = f64x2.sub(f64x2.promote_low_f32x4(upper(x)), f64x2.promote_low_f32x4(upper(y)));
    const terms = f64x2.mul(f64x2.promote_low_f32x4(p), f64x2.add(low, offset));
    total = f64x2.add(total, left >= 2 ? terms : f64x2.replace_lane(terms, 1, 0));
    if (left < 3) continue;
    const more = f64x2.mul(f64x2.promote_low_f32x4(upper(p)), f64x2.add(high, offset));
    total = f64x2.add(total, left >= 4 ? more : f64x2.replace_lane(more, 1, 0));
  }
  return sumOfPairs(total) * correction;
}

/**
 * The natural logarithm of a number from 1 on: x is a power of 2 times m, and the logarithm of m is 2 artanh((m - 1) / (m + 1)).
 * AssemblyScript's own would keep a table at an address that is not free here.
 */
function logarithm(x: f64): f64 {
  const bits = reinterpret<i64>(x);
  let power = <f64>((bits >> 52) - 1023);
  let m = reinterpret<f64>((bits & 0xfffffffffffff) | 0x3ff0000000000000);
  if (m > Math.SQRT2) {
    m /= 2;
    power += 1;
  }
  const s = (m - 1) / (m + 1);
  const square = s * s;
  let sum: f64 = 0;
  for (let odd: f64 = 23; odd > 0; odd -= 2) sum = sum * square + 1 / odd;
  return power * Math.LN2 + 2 * s * sum;
}

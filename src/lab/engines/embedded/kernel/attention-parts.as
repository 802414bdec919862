/** What attention is made of: scores of a query, their softmax, and sums of values by their weights. */

import { exponential, highest, loadSome, multiplyAdd, storeSome, sumOf, sumOfPairs, sumsOf, upper } from './vector';

/** The query times each key. */
export function score(query: usize, keys: usize, stride: usize, count: i32, width: i32, to: usize): void {
  const whole = width & ~3;
  let i = 0;
  for (; i + 4 <= count; i += 4) {
    let q = query;
    let k0 = keys + <usize>i * stride;
    let k1 = k0 + stride;
    let k2 = k1 + stride;
    let k3 = k2 + stride;
    let s0 = f32x4.splat(0);
    let s1 = f32x4.splat(0);
    let s2 = f32x4.splat(0);
    let s3 = f32x4.splat(0);
    for (let left = whole; left > 0; left -= 4) {
      const x = v128.load(q);
      s0 = multiplyAdd(x, v128.load(k0), s0);
      s1 = multiplyAdd(x, v128.load(k1), s1);
      s2 = multiplyAdd(x, v128.load(k2), s2);
      s3 = multiplyAdd(x, v128.load(k3), s3);
      q += 16;
      k0 += 16;
      k1 += 16;
      k2 += 16;
      k3 += 16;
    }
    if (whole < width) {
      const rest = width - whole;
      const x = loadSome(q, rest);
      s0 = multiplyAdd(x, loadSome(k0, rest), s0);
      s1 = multiplyAdd(x, loadSome(k1, rest), s1);
      s2 = multiplyAdd(x, loadSome(k2, rest), s2);
      s3 = multiplyAdd(x, loadSome(k3, rest), s3);
    }
    v128.store(to + (<usize>i << 2), sumsOf(s0, s1, s2, s3));
  }
  for (; i < count; i++) {
    const key = keys + <usize>i * stride;
    let s = f32x4.splat(0);
    for (let j = 0; j < width; j += 4) {
      const at = <usize>j << 2;
      s = multiplyAdd(loadSome(query + at, width - j), loadSome(key + at, width - j), s);
    }
    store<f32>(to + (<usize>i << 2), sumOf(s));
  }
}

/** From scores to weights, whose sum it gives back. */
export function soften(at: usize, count: i32, scale: f32): f32 {
  const shift = f32x4.splat(highest(at, count));
  const factor = f32x4.splat(scale);
  let total = f64x2.splat(0);
  for (let i = 0; i < count; i += 4) {
    const left = count - i;
    const weights = exponential(f32x4.mul(f32x4.sub(loadSome(at + (<usize>i << 2), left), shift), factor));
    storeSome(at + (<usize>i << 2), weights, left);
    const there = left >= 4 ? weights : loadSome(at + (<usize>i << 2), left);
    total = f64x2.add(total, f64x2.promote_low_f32x4(there));
    total = f64x2.add(total, f64x2.promote_low_f32x4(upper(there)));
  }
  return <f32>sumOfPairs(total);
}

/** Adds the values, each times its weight, in the order of their positions. */
export function mix(weights: usize, values: usize, stride: usize, count: i32, width: i32, to: usize): void {
  let at: usize = 0;
  let left = width;
  for (; left >= 32; left -= 32) {
    mix32(weights, values + at, stride, count, to + at);
    at += 128;
  }
  for (; left > 0; left -= 4) {
    let sum = loadSome(to + at, left);
    for (let i = 0; i < count; i++) {
      const weight = v128.load_splat<f32>(weights + (<usize>i << 2));
      sum = multiplyAdd(weight, loadSome(values + at + <usize>i * stride, left), sum);
    }
    storeSome(to + at, sum, left);
    at += 16;
  }
}

/** The same for four rows, of a width that is a multiple of eight: each value is loaded once for all of them. */
export function mixFour(
  weights: usize, weightsStride: usize, values: usize, stride: usize, count: i32, width: i32, to: usize, toStride: usize,
): void {
  for (let left = width; left > 0; left -= 8) {
    mixFourBy8(weights, weightsStride, values, stride, count, to, toStride);
    values += 32;
    to += 32;
  }
}

function mixFourBy8(weights: usize, weightsStride: usize, values: usize, stride: usize, count: i32, to: usize, toStride: usize): void {
  let w0 = weights;
  let w1 = w0 + weightsStride;
  let w2 = w1 + weightsStride;
  let w3 = w2 + weightsStride;
  let low0 = v128.load(to);
  let high0 = v128.load(to, 16);
  let low1 = v128.load(to + toStride);
  let high1 = v128.load(to + toStride, 16);
  let low2 = v128.load(to + 2 * toStride);
  let high2 = v128.load(to + 2 * toStride, 16);
  let low3 = v128.load(to + 3 * toStride);
  let high3 = v128.load(to + 3 * toStride, 16);
  for (; count > 0; count--) {
    const x = v128.load(values);
    const y = v128.load(values, 16);
    const s0 = v128.load_splat<f32>(w0);
    low0 = multiplyAdd(s0, x, low0);
    high0 = multiplyAdd(s0, y, high0);
    const s1 = v128.load_splat<f32>(w1);
    low1 = multiplyAdd(s1, x, low1);
    high1 = multiplyAdd(s1, y, high1);
    const s2 = v128.load_splat<f32>(w2);
    low2 = multiplyAdd(s2, x, low2);
    high2 = multiplyAdd(s2, y, high2);
    const s3 = v128.load_splat<f32>(w3);
    low3 = multiplyAdd(s3, x, low3);
    high3 = multiplyAdd(s3, y, high3);
    w0 += 4;
    w1 += 4;
    w2 += 4;
    w3 += 4;
    values += stride;
  }
  v128.store(to, low0);
  v128.store(to, high0, 16);
  v128.store(to + toStride, low1);
  v128.store(to + toStride, high1, 16);
  v128.store(to + 2 * toStride, low2);
  v128.store(to + 2 * toStride, high2, 16);
  v128.store(to + 3 * toStride, low3);
  v128.store(to + 3 * toStride, high3, 16);
}

function mix32(weights: usize, values: usize, stride: usize, count: i32, to: usize): void {
  let s0 = v128.load(to);
  let s1 = v128.load(to, 16);
  let s2 = v128.load(to, 32);
  let s3 = v128.load(to, 48);
  let s4 = v128.load(to, 64);
  let s5 = v128.load(to, 80);
  let s6 = v128.load(to, 96);
  let s7 = v128.load(to, 112);
  for (let i = 0; i < count; i++) {
    const weight = v128.load_splat<f32>(weights);
    s0 = multiplyAdd(weight, v128.load(values), s0);
    s1 = multiplyAdd(weight, v128.load(values, 16), s1);
    s2 = multiplyAdd(weight, v128.load(values, 32), s2);
    s3 = multiplyAdd(weight, v128.load(values, 48), s3);
    s4 = multiplyAdd(weight, v128.load(values, 64), s4);
    s5 = multiplyAdd(weight, v128.load(values, 80), s5);
    s6 = multiplyAdd(weight, v128.load(values, 96), s6);
    s7 = multiplyAdd(weight, v128.load(values, 112), s7);
    weights += 4;
    values += stride;
  }
  v128.store(to, s0);
  v128.store(to, s1, 16);
  v128.store(to, s2, 32);
  v128.store(to, s3, 48);
  v128.store(to, s4, 64);
  v128.store(to, s5, 80);
  v128.store(to, s6, 96);
  v128.store(to, s7, 112);
}

export function divide(at: usize, width: i32, divisor: f32): void {
  const by = f32x4.splat(divisor);
  for (let i = 0; i < width; i += 4) {
    const x = at + (<usize>i << 2);
    storeSome(x, f32x4.div(loadSome(x, width - i), by), width - i);
  }
}

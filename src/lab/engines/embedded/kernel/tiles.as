/**
 * Tiles of a product: some rows times one panel of eight outputs. They are written out, because sums must stay in registers: six rows
 * are as many as there are registers for on x86, and anything after the loop but storing makes V8 move sums out of them.
 * Sums start from what is at `sums`: a bias, or what an earlier part of the inputs came to.
 */

import { multiplyAdd } from './vector';

export function tile1(a: usize, b: usize, inner: i32, sums: usize, c: usize): void {
  let low = v128.load(sums);
  let high = v128.load(sums, 16);
  for (let left = inner; left; left--) {
    const s = v128.load_splat<f32>(a);
    low = multiplyAdd(s, v128.load(b), low);
    high = multiplyAdd(s, v128.load(b, 16), high);
    a += 4;
    b += 32;
  }
  v128.store(c, low);
  v128.store(c, high, 16);
}

/** One row times four panels at once: with fewer sums, each would wait for the one before. */
export function tile1x4(a: usize, b: usize, panelBytes: usize, inner: i32, sums: usize, sumsStep: usize, c: usize): void {
  let b1 = b + panelBytes;
  let b2 = b1 + panelBytes;
  let b3 = b2 + panelBytes;
  let low0 = v128.load(sums);
  let high0 = v128.load(sums, 16);
  let low1 = v128.load(sums + sumsStep);
  let high1 = v128.load(sums + sumsStep, 16);
  let low2 = v128.load(sums + 2 * sumsStep);
  let high2 = v128.load(sums + 2 * sumsStep, 16);
  let low3 = v128.load(sums + 3 * sumsStep);
  let high3 = v128.load(sums + 3 * sumsStep, 16);
  for (let left = inner; left; left--) {
    const s = v128.load_splat<f32>(a);
    low0 = multiplyAdd(s, v128.load(b), low0);
    high0 = multiplyAdd(s, v128.load(b, 16), high0);
    low1 = multiplyAdd(s, v128.load(b1), low1);
    high1 = multiplyAdd(s, v128.load(b1, 16), high1);
    low2 = multiplyAdd(s, v128.load(b2), low2);
    high2 = multiplyAdd(s, v128.load(b2, 16), high2);
    low3 = multiplyAdd(s, v128.load(b3), low3);
    high3 = multiplyAdd(s, v128.load(b3, 16), high3);
    a += 4;
    b += 32;
    b1 += 32;
    b2 += 32;
    b3 += 32;
  }
  v128.store(c, low0);
  v128.store(c, high0, 16);
  v128.store(c, low1, 32);
  v128.store(c, high1, 48);
  v128.store(c, low2, 64);
  v128.store(c, high2, 80);
  v128.store(c, low3, 96);
  v128.store(c, high3, 112);
}

export function tile2(
  a: usize, aStride: usize, b: usize, inner: i32, sums: usize, sumsStride: usize, c: usize, cStride: usize,
): void {
  let a0 = a;
  let a1 = a + aStride;
  let low0 = v128.load(sums);
  let high0 = v128.load(sums, 16);
  let low1 = v128.load(sums + sumsStride);
  let high1 = v128.load(sums + sumsStride, 16);
  for (let left = inner; left; left--) {
    const x = v128.load(b);
    const y = v128.load(b, 16);
    const s0 = v128.load_splat<f32>(a0);
    low0 = multiplyAdd(s0, x, low0);
    high0 = multiplyAdd(s0, y, high0);
    const s1 = v128.load_splat<f32>(a1);
    low1 = multiplyAdd(s1, x, low1);
    high1 = multiplyAdd(s1, y, high1);
    a0 += 4;
    a1 += 4;
    b += 32;
  }
  v128.store(c, low0);
  v128.store(c, high0, 16);
  v128.store(c + cStride, low1);
  v128.store(c + cStride, high1, 16);
}

export function tile3(
  a: usize, aStride: usize, b: usize, inner: i32, sums: usize, sumsStride: usize, c: usize, cStride: usize,
): void {
  let a0 = a;
  let a1 = a + aStride;
  let a2 = a + 2 * aStride;
  let low0 = v128.load(sums);
  let high0 = v128.load(sums, 16);
  let low1 = v128.load(sums + sumsStride);
  let high1 = v128.load(sums + sumsStride, 16);
  let low2 = v128.load(sums + 2 * sumsStride);
  let high2 = v128.load(sums + 2 * sumsStride, 16);
  for (let left = inner; left; left--) {
    const x = v128.load(b);
    const y = v128.load(b, 16);
    const s0 = v128.load_splat<f32>(a0);
    low0 = multiplyAdd(s0, x, low0);
    high0 = multiplyAdd(s0, y, high0);
    const s1 = v128.load_splat<f32>(a1);
    low1 = multiplyAdd(s1, x, low1);
    high1 = multiplyAdd(s1, y, high1);
    const s2 = v128.load_splat<f32>(a2);
    low2 = multiplyAdd(s2, x, low2);
    high2 = multiplyAdd(s2, y, high2);
    a0 += 4;
    a1 += 4;
    a2 += 4;
    b += 32;
  }
  v128.store(c, low0);
  v128.store(c, high0, 16);
  v128.store(c + cStride, low1);
  v128.store(c + cStride, high1, 16);
  v128.store(c + 2 * cStride, low2);
  v128.store(c + 2 * cStride, high2, 16);
}

export function tile4(
  a: usize, aStride: usize, b: usize, inner: i32, sums: usize, sumsStride: usize, c: usize, cStride: usize,
): void {
  let a0 = a;
  let a1 = a + aStride;
  let a2 = a + 2 * aStride;
  let a3 = a + 3 * aStride;
  let low0 = v128.load(sums);
  let high0 = v128.load(sums, 16);
  let low1 = v128.load(sums + sumsStride);
  let high1 = v128.load(sums + sumsStride, 16);
  let low2 = v128.load(sums + 2 * sumsStride);
  let high2 = v128.load(sums + 2 * sumsStride, 16);
  let low3 = v128.load(sums + 3 * sumsStride);
  let high3 = v128.load(sums + 3 * sumsStride, 16);
  for (let left = inner; left; left--) {
    const x = v128.load(b);
    const y = v128.load(b, 16);
    const s0 = v128.load_splat<f32>(a0);
    low0 = multiplyAdd(s0, x, low0);
    high0 = multiplyAdd(s0, y, high0);
    const s1 = v128.load_splat<f32>(a1);
    low1 = multiplyAdd(s1, x, low1);
    high1 = multiplyAdd(s1, y, high1);
    const s2 = v128.load_splat<f32>(a2);
    low2 = multiplyAdd(s2, x, low2);
    high2 = multiplyAdd(s2, y, high2);
    const s3 = v128.load_splat<f32>(a3);
    low3 = multiplyAdd(s3, x, low3);
    high3 = multiplyAdd(s3, y, high3);
    a0 += 4;
    a1 += 4;
    a2 += 4;
    a3 += 4;
    b += 32;
  }
  v128.store(c, low0);
  v128.store(c, high0, 16);
  v128.store(c + cStride, low1);
  v128.store(c + cStride, high1, 16);
  v128.store(c + 2 * cStride, low2);
  v128.store(c + 2 * cStride, high2, 16);
  v128.store(c + 3 * cStride, low3);
  v128.store(c + 3 * cStride, high3, 16);
}

export function tile5(
  a: usize, aStride: usize, b: usize, inner: i32, sums: usize, sumsStride: usize, c: usize, cStride: usize,
): void {
  let a0 = a;
  let a1 = a + aStride;
  let a2 = a + 2 * aStride;
  let a3 = a + 3 * aStride;
  let a4 = a + 4 * aStride;
  let low0 = v128.load(sums);
  let high0 = v128.load(sums, 16);
  let low1 = v128.load(sums + sumsStride);
  let high1 = v128.load(sums + sumsStride, 16);
  let low2 = v128.load(sums + 2 * sumsStride);
  let high2 = v128.load(sums + 2 * sumsStride, 16);
  let low3 = v128.load(sums + 3 * sumsStride);
  let high3 = v128.load(sums + 3 * sumsStride, 16);
  let low4 = v128.load(sums + 4 * sumsStride);
  let high4 = v128.load(sums + 4 * sumsStride, 16);
  for (let left = inner; left; left--) {
    const x = v128.load(b);
    const y = v128.load(b, 16);
    const s0 = v128.load_splat<f32>(a0);
    low0 = multiplyAdd(s0, x, low0);
    high0 = multiplyAdd(s0, y, high0);
    const s1 = v128.load_splat<f32>(a1);
    low1 = multiplyAdd(s1, x, low1);
    high1 = multiplyAdd(s1, y, high1);
    const s2 = v128.load_splat<f32>(a2);
    low2 = multiplyAdd(s2, x, low2);
    high2 = multiplyAdd(s2, y, high2);
    const s3 = v128.load_splat<f32>(a3);
    low3 = multiplyAdd(s3, x, low3);
    high3 = multiplyAdd(s3, y, high3);
    const s4 = v128.load_splat<f32>(a4);
    low4 = multiplyAdd(s4, x, low4);
    high4 = multiplyAdd(s4, y, high4);
    a0 += 4;
    a1 += 4;
    a2 += 4;
    a3 += 4;
    a4 += 4;
    b += 32;
  }
  v128.store(c, low0);
  v128.store(c, high0, 16);
  v128.store(c + cStride, low1);
  v128.store(c + cStride, high1, 16);
  v128.store(c + 2 * cStride, low2);
  v128.store(c + 2 * cStride, high2, 16);
  v128.store(c + 3 * cStride, low3);
  v128.store(c + 3 * cStride, high3, 16);
  v128.store(c + 4 * cStride, low4);
  v128.store(c + 4 * cStride, high4, 16);
}

export function tile6(
  a: usize, aStride: usize, b: usize, inner: i32, sums: usize, sumsStride: usize, c: usize, cStride: usize,
): void {
  let a0 = a;
  let a1 = a + aStride;
  let a2 = a + 2 * aStride;
  let a3 = a + 3 * aStride;
  let a4 = a + 4 * aStride;
  let a5 = a + 5 * aStride;
  let low0 = v128.load(sums);
  let high0 = v128.load(sums, 16);
  let low1 = v128.load(sums + sumsStride);
  let high1 = v128.load(sums + sumsStride, 16);
  let low2 = v128.load(sums + 2 * sumsStride);
  let high2 = v128.load(sums + 2 * sumsStride, 16);
  let low3 = v128.load(sums + 3 * sumsStride);
  let high3 = v128.load(sums + 3 * sumsStride, 16);
  let low4 = v128.load(sums + 4 * sumsStride);
  let high4 = v128.load(sums + 4 * sumsStride, 16);
  let low5 = v128.load(sums + 5 * sumsStride);
  let high5 = v128.load(sums + 5 * sumsStride, 16);
  for (let left = inner; left; left--) {
    const x = v128.load(b);
    const y = v128.load(b, 16);
    const s0 = v128.load_splat<f32>(a0);
    low0 = multiplyAdd(s0, x, low0);
    high0 = multiplyAdd(s0, y, high0);
    const s1 = v128.load_splat<f32>(a1);
    low1 = multiplyAdd(s1, x, low1);
    high1 = multiplyAdd(s1, y, high1);
    const s2 = v128.load_splat<f32>(a2);
    low2 = multiplyAdd(s2, x, low2);
    high2 = multiplyAdd(s2, y, high2);
    const s3 = v128.load_splat<f32>(a3);
    low3 = multiplyAdd(s3, x, low3);
    high3 = multiplyAdd(s3, y, high3);
    const s4 = v128.load_splat<f32>(a4);
    low4 = multiplyAdd(s4, x, low4);
    high4 = multiplyAdd(s4, y, high4);
    const s5 = v128.load_splat<f32>(a5);
    low5 = multiplyAdd(s5, x, low5);
    high5 = multiplyAdd(s5, y, high5);
    a0 += 4;
    a1 += 4;
    a2 += 4;
    a3 += 4;
    a4 += 4;
    a5 += 4;
    b += 32;
  }
  v128.store(c, low0);
  v128.store(c, high0, 16);
  v128.store(c + cStride, low1);
  v128.store(c + cStride, high1, 16);
  v128.store(c + 2 * cStride, low2);
  v128.store(c + 2 * cStride, high2, 16);
  v128.store(c + 3 * cStride, low3);
  v128.store(c + 3 * cStride, high3, 16);
  v128.store(c + 4 * cStride, low4);
  v128.store(c + 4 * cStride, high4, 16);
  v128.store(c + 5 * cStride, low5);
  v128.store(c + 5 * cStride, high5, 16);
}

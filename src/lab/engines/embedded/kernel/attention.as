/** Causal attention of one query after the other: scores against the keys, softmax, and the mix of the values. */

import { sequenceOf, sequenceRow, ownKeys, ownLayerBytes, positionOf, sharedKeys, sharedLayerBytes, sharedLength } from './sequences';
import { field, numberField, ROWS_PER_ITEM } from './operation';
import { capSome } from './activation';
import { exponential, highest, loadSome, multiplyAdd, storeSome, sumOf, sumOfPairs, sumsOf, upper } from './vector';

/**
 * Fields: queries, keys and values of each row, side by side; stride, rows, heads, key-value heads, head width, to, its stride, scale of the
 * scores, window or 0, rows' table, sequences' table, layer, soft cap of the scores or 0, where to write weights or 0, its stride, its stride between
 * heads. An item is some rows of one head.
 */
export function attend(operation: usize, item: i32, scratch: usize): void {
  const rows = <i32>field(operation, 2);
  const heads = <i32>field(operation, 3);
  const head = item % heads;
  const first = (item / heads) * ROWS_PER_ITEM;
  const end = min(first + ROWS_PER_ITEM, rows);
  for (let row = first; row < end; row++) attendRow(operation, row, head, scratch, false);
}

/** The same fields, but in place of the rows a table with a row and a head for each item, whose weights are given and not computed. */
export function mixPatterns(operation: usize, item: i32, scratch: usize): void {
  const entry = field(operation, 2) + (<usize>item << 3);
  attendRow(operation, load<i32>(entry), load<i32>(entry, 4), scratch, true);
}

function attendRow(operation: usize, row: i32, head: i32, scratch: usize, isGiven: bool): void {
  const batch = field(operation, 0);
  const stride = field(operation, 1);
  const heads = field(operation, 3);
  const keyHeads = field(operation, 4);
  const headWidth = <i32>field(operation, 5);
  const headBytes = <usize>headWidth << 2;
  const scale = numberField(operation, 8);
  const window = <i32>field(operation, 9);
  const cap = numberField(operation, 13);
  const layer = field(operation, 12);
  const position = positionOf(field(operation, 10), row);
  const sequence = sequenceOf(field(operation, 10), field(operation, 11), row);
  const keyHead = <usize>head / (heads / keyHeads);
  const query = batch + <usize>row * stride + <usize>head * headBytes;
  const to = field(operation, 6) + <usize>row * field(operation, 7) + <usize>head * headBytes;

  const shared = sharedLength(sequence, layer);
  const sharedValuesAway = sharedLayerBytes(sequence) >> 1;
  const sharedAt = sharedKeys(sequence, layer) + keyHead * (sharedValuesAway / keyHeads);
  const own = ownKeys(sequence, layer);
  const ownStride = own ? headBytes : stride;
  const ownValuesAway = own ? ownLayerBytes(sequence) >> 1 : keyHeads * headBytes;
  const ownAt = own
    ? own + keyHead * (ownValuesAway / keyHeads)
    : batch + sequenceRow(sequence) * stride + (heads + keyHead) * headBytes;

  // Weights that are given may be of any position, also of one before the window.
  const start = !isGiven && window && position >= window ? position - window + 1 : 0;
  const count = position + 1 - start;
  const sharedCount = max(shared - start, 0);
  const sharedFrom = sharedAt + <usize>min(start, shared) * headBytes;
  const ownFrom = ownAt + <usize>max(start - shared, 0) * ownStride;
  const rest = scratch + (<usize>sharedCount << 2);

  const patterns = field(operation, 14);
  const pattern = patterns + <usize>row * field(operation, 15) + <usize>head * field(operation, 16);
  const seen = pattern + (<usize>start << 2);
  let total: f32 = 1;
  if (isGiven) {
    memory.copy(scratch, seen, <usize>count << 2);
  } else {
    score(query, sharedFrom, headBytes, sharedCount, headWidth, scratch);
    score(query, ownFrom, ownStride, count - sharedCount, headWidth, rest);
    if (cap) capSome(scratch, count, scale, cap);
    total = soften(scratch, count, cap ? 1 : scale);
  }
  if (patterns && !isGiven) {
    memory.fill(pattern, 0, field(operation, 16));
    memory.copy(seen, scratch, <usize>count << 2);
    divide(seen, count, total);
  }
  memory.fill(to, 0, headBytes);
  mix(scratch, sharedFrom + sharedValuesAway, headBytes, sharedCount, headWidth, to);
  mix(rest, ownFrom + ownValuesAway, ownStride, count - sharedCount, headWidth, to);
  divide(to, headWidth, total);
}

/** The query times each key. */
function score(query: usize, keys: usize, stride: usize, count: i32, width: i32, to: usize): void {
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
function soften(at: usize, count: i32, scale: f32): f32 {
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
function mix(weights: usize, values: usize, stride: usize, count: i32, width: i32, to: usize): void {
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

function divide(at: usize, width: i32, divisor: f32): void {
  const by = f32x4.splat(divisor);
  for (let i = 0; i < width; i += 4) {
    const x = at + (<usize>i << 2);
    storeSome(x, f32x4.div(loadSome(x, width - i), by), width - i);
  }
}

/** Prepares queries and keys for attention (norm, rotary embedding), and writes keys and values into the sequence's KV store. */

import { sequenceOf, ownKeys, ownLayerBytes, positionOf, sharedLength, textLength } from './sequences';
import { normalizeLayer, normalizeRms } from './norm';
import { endRow, field, firstRow, numberField } from './operation';
import { copyNumbers, loadSome, multiplyAdd, storeSome } from './vector';

/** What the norms of queries and keys go over; heads share their weights unless it is one of these. */
const OVER_EACH_HEAD: usize = 1;
const OVER_ALL_HEADS: usize = 2;

/**
 * Fields: queries, keys and values of each row, side by side; stride, rows, heads, key-value heads, head width, half of the numbers that are
 * rotated, cosines (a row for each position, sines behind them), stride of those, query norm or 0, key norm or 0, epsilon, rows' table, sequences' table, layer,
 * over what a norm goes, whether it takes the mean off, of how many tokens a text has other cosines or 0, how many bytes away those are.
 */
export function prepareHeads(operation: usize, item: i32): void {
  const heads = <i32>field(operation, 3);
  const keyHeads = <i32>field(operation, 4);
  const headWidth = <i32>field(operation, 5);
  const half = <i32>field(operation, 6);
  const queryNorm = field(operation, 9);
  const keyNorm = field(operation, 10);
  const epsilon = numberField(operation, 11);
  const rows = field(operation, 12);
  const layer = field(operation, 14);
  const over = field(operation, 15);
  const takesMean = field(operation, 16);
  const longest = <i32>field(operation, 17);
  const headBytes = <usize>headWidth << 2;
  const end = endRow(item, <i32>field(operation, 2));
  for (let row = firstRow(item); row < end; row++) {
    const at = field(operation, 0) + <usize>row * field(operation, 1);
    const keys = at + <usize>heads * headBytes;
    const position = positionOf(rows, row);
    const sequence = sequenceOf(rows, field(operation, 13), row);
    const away = longest && textLength(sequence) > longest ? field(operation, 18) : 0;
    const cosines = field(operation, 7) + away + <usize>position * field(operation, 8);
    if (over == OVER_ALL_HEADS) {
      if (queryNorm) normalizeSome(at, heads * headWidth, queryNorm, epsilon, takesMean);
      if (keyNorm) normalizeSome(keys, keyHeads * headWidth, keyNorm, epsilon, takesMean);
    }
    for (let head = 0; head < heads + keyHeads; head++) {
      const x = at + <usize>head * headBytes;
      const norm = head < heads ? queryNorm : keyNorm;
      const number = head < heads ? head : head - heads;
      const weight = over == OVER_EACH_HEAD ? norm + <usize>number * headBytes : norm;
      if (norm && over != OVER_ALL_HEADS) normalizeSome(x, headWidth, weight, epsilon, takesMean);
      if (half) rotate(x, half, cosines);
    }
    const own = ownKeys(sequence, layer);
    if (!own) continue;
    const valuesAway = ownLayerBytes(sequence) >> 1;
    const headAway = valuesAway / <usize>keyHeads;
    const values = keys + <usize>keyHeads * headBytes;
    let to = own + <usize>(position - sharedLength(sequence, layer)) * headBytes;
    for (let head: usize = 0; head < <usize>keyHeads; head++) {
      copyNumbers(to, keys + head * headBytes, headWidth);
      copyNumbers(to + valuesAway, values + head * headBytes, headWidth);
      to += headAway;
    }
  }
}

function normalizeSome(x: usize, width: i32, weight: usize, epsilon: f32, takesMean: usize): void {
  if (takesMean) normalizeLayer(x, x, width, weight, 0, epsilon);
  else normalizeRms(x, x, width, weight, epsilon);
}

/** Halves against halves. */
function rotate(x: usize, half: i32, cosines: usize): void {
  const halfBytes = <usize>half << 2;
  for (let i = 0; i < half; i += 4) {
    const at = <usize>i << 2;
    const count = half - i;
    const cosine = loadSome(cosines + at, count);
    const sine = loadSome(cosines + halfBytes + at, count);
    const first = loadSome(x + at, count);
    const second = loadSome(x + halfBytes + at, count);
    storeSome(x + at, multiplyAdd(first, cosine, f32x4.neg(f32x4.mul(second, sine))), count);
    storeSome(x + halfBytes + at, multiplyAdd(second, cosine, f32x4.mul(first, sine)), count);
  }
}

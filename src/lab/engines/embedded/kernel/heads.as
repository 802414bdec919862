/** Prepares queries and keys for attention (norm, rotary embedding), and writes keys and values into the sequence's KV store. */

import { sequenceOf, ownKeys, ownLayerBytes, positionOf, sharedLength } from './sequences';
import { normalizeRms } from './norm';
import { endRow, field, firstRow, numberField } from './operation';
import { loadSome, multiplyAdd, storeSome } from './vector';

/**
 * Fields: queries, keys and values of each row, side by side; stride, rows, heads, key-value heads, head width, half of the numbers that are
 * rotated, cosines (a row for each position, sines behind them), stride of those, query norm or 0, key norm or 0, epsilon, rows' table, sequences' table, layer.
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
  const headBytes = <usize>headWidth << 2;
  const end = endRow(item, <i32>field(operation, 2));
  for (let row = firstRow(item); row < end; row++) {
    const at = field(operation, 0) + <usize>row * field(operation, 1);
    const keys = at + <usize>heads * headBytes;
    const position = positionOf(rows, row);
    const cosines = field(operation, 7) + <usize>position * field(operation, 8);
    for (let head = 0; head < heads + keyHeads; head++) {
      const x = at + <usize>head * headBytes;
      const norm = head < heads ? queryNorm : keyNorm;
      if (norm) normalizeRms(x, x, headWidth, norm, epsilon);
      if (half) rotate(x, half, cosines);
    }
    const sequence = sequenceOf(rows, field(operation, 13), row);
    const own = ownKeys(sequence, layer);
    if (!own) continue;
    const valuesAway = ownLayerBytes(sequence) >> 1;
    const headAway = valuesAway / <usize>keyHeads;
    const values = keys + <usize>keyHeads * headBytes;
    let to = own + <usize>(position - sharedLength(sequence, layer)) * headBytes;
    for (let head: usize = 0; head < <usize>keyHeads; head++) {
      memory.copy(to, keys + head * headBytes, headBytes);
      memory.copy(to + valuesAway, values + head * headBytes, headBytes);
      to += headAway;
    }
  }
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

/** Causal attention: scores of queries against the keys, softmax, and the mix of the values. */

import { capSome } from './activation';
import { divide, mix, mixFour, score, soften } from './attention-parts';
import { field, numberField, ROWS_PER_ITEM } from './operation';
import { sequenceOf, sequenceRow, ownKeys, ownLayerBytes, positionOf, sharedKeys, sharedLayerBytes, sharedLength } from './sequences';
import { fillZeros } from './vector';

/** Positions whose keys or values stay in the nearest cache, while one query after the other meets them. */
const BLOCK: i32 = 64;
/** Bytes at the start of a thread's own room, for the sums of the weights of each row; its scores are behind them. */
const SUMS: usize = 16;

/**
 * Fields: queries, keys and values of each row, side by side; stride, rows, heads, key-value heads, head width, to, its stride, scale of the
 * scores, window or 0, rows' table, sequences' table, layer, soft cap of the scores or 0, where to write weights or 0, its stride, its stride between
 * heads, a table of the rows that are computed or 0 for the first ones. An item is some rows of one head.
 */
export function attend(operation: usize, item: i32, scratch: usize): void {
  const heads = <i32>field(operation, 3);
  const head = item % heads;
  const listed = field(operation, 17);
  const end = min((item / heads + 1) * ROWS_PER_ITEM, <i32>field(operation, 2));
  for (let i = (item / heads) * ROWS_PER_ITEM; i < end; ) {
    const count = togetherFrom(operation, listed, i, end);
    attendRows(operation, listed, i, count, head, scratch, false);
    i += count;
  }
}

/** The same fields, but in place of the rows a table with a row and a head for each item, whose weights are given and not computed. */
export function mixPatterns(operation: usize, item: i32, scratch: usize): void {
  const entry = field(operation, 2) + (<usize>item << 3);
  attendRows(operation, 0, load<i32>(entry), 1, load<i32>(entry, 4), scratch, true);
}

/** How many rows from this one on see the same positions, but for the last ones: those of one sequence, where there is no window. */
function togetherFrom(operation: usize, listed: usize, first: i32, end: i32): i32 {
  if (field(operation, 9)) return 1;
  const rows = field(operation, 10);
  const sequences = field(operation, 11);
  const sequence = sequenceOf(rows, sequences, rowAt(listed, first));
  let next = first + 1;
  while (next < end && sequenceOf(rows, sequences, rowAt(listed, next)) == sequence) next++;
  return next - first;
}

@inline
function rowAt(listed: usize, index: i32): i32 {
  return listed ? load<i32>(listed + (<usize>index << 2)) : index;
}

/** Some rows of one sequence, in the order of their positions; only one, if there is a window, or if its weights are given. */
function attendRows(operation: usize, listed: usize, first: i32, count: i32, head: i32, scratch: usize, isGiven: bool): void {
  const batch = field(operation, 0);
  const stride = field(operation, 1);
  const heads = field(operation, 3);
  const keyHeads = field(operation, 4);
  const headWidth = <i32>field(operation, 5);
  const headBytes = <usize>headWidth << 2;
  const scale = numberField(operation, 8);
  const window = <i32>field(operation, 9);
  const rows = field(operation, 10);
  const cap = numberField(operation, 13);
  const layer = field(operation, 12);
  const position = positionOf(rows, rowAt(listed, first));
  const lastPosition = positionOf(rows, rowAt(listed, first + count - 1));
  const sequence = sequenceOf(rows, field(operation, 11), rowAt(listed, first));
  const keyHead = <usize>head / (heads / keyHeads);
  const queries = batch + <usize>head * headBytes;
  const toStride = field(operation, 7);
  const to = field(operation, 6) + <usize>first * toStride + <usize>head * headBytes;

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
  const sharedCount = max(shared - start, 0);
  const sharedFrom = sharedAt + <usize>min(start, shared) * headBytes;
  const ownFrom = ownAt + <usize>max(start - shared, 0) * ownStride;
  const before = start + sharedCount;
  const scores = scratch + SUMS;
  const scoresStride = <usize>(lastPosition + 4 - start) << 2;
  const ownScores = scores + (<usize>sharedCount << 2);

  if (!isGiven) {
    for (let j = 0; j < sharedCount; j += BLOCK) {
      const keys = sharedFrom + <usize>j * headBytes;
      for (let i = 0; i < count; i++) {
        const query = queries + <usize>rowAt(listed, first + i) * stride;
        score(query, keys, headBytes, min(BLOCK, sharedCount - j), headWidth, scores + <usize>i * scoresStride + (<usize>j << 2));
      }
    }
    for (let j = 0; before + j <= lastPosition; j += BLOCK) {
      const keys = ownFrom + <usize>j * ownStride;
      for (let i = 0; i < count; i++) {
        const row = rowAt(listed, first + i);
        const query = queries + <usize>row * stride;
        const seen = min(BLOCK, positionOf(rows, row) + 1 - before - j);
        score(query, keys, ownStride, seen, headWidth, ownScores + <usize>i * scoresStride + (<usize>j << 2));
      }
    }
  }

  for (let i = 0; i < count; i++) {
    const row = rowAt(listed, first + i);
    const weights = scores + <usize>i * scoresStride;
    const seen = positionOf(rows, row) + 1 - start;
    const patterns = field(operation, 14);
    const pattern = patterns + <usize>row * field(operation, 15) + <usize>head * field(operation, 16);
    let total: f32 = 1;
    if (isGiven) {
      memory.copy(weights, pattern + (<usize>start << 2), <usize>seen << 2);
    } else {
      if (cap) capSome(weights, seen, scale, cap);
      total = soften(weights, seen, cap ? 1 : scale);
    }
    if (patterns && !isGiven) {
      memory.fill(pattern, 0, field(operation, 16));
      memory.copy(pattern + (<usize>start << 2), weights, <usize>seen << 2);
      divide(pattern + (<usize>start << 2), seen, total);
    }
    store<f32>(scratch + (<usize>i << 2), total);
    fillZeros(to + <usize>i * toStride, headWidth);
  }

  mixRows(count, scores, scoresStride, sharedFrom + sharedValuesAway, headBytes, sharedCount, headWidth, to, toStride);
  const allSee = position + 1 - before;
  const values = ownFrom + ownValuesAway;
  mixRows(count, ownScores, scoresStride, values, ownStride, allSee, headWidth, to, toStride);
  for (let i = 0; i < count; i++) {
    const more = positionOf(rows, rowAt(listed, first + i)) - position;
    const weights = ownScores + <usize>i * scoresStride + (<usize>allSee << 2);
    mix(weights, values + <usize>allSee * ownStride, ownStride, more, headWidth, to + <usize>i * toStride);
    divide(to + <usize>i * toStride, headWidth, load<f32>(scratch + (<usize>i << 2)));
  }
}

/** Adds the values that all of some rows see. */
function mixRows(
  rows: i32, weights: usize, weightsStride: usize, values: usize, stride: usize, count: i32, width: i32, to: usize, toStride: usize,
): void {
  if (rows == 4 && width % 8 == 0) {
    for (let j = 0; j < count; j += BLOCK) {
      const block = values + <usize>j * stride;
      mixFour(weights + (<usize>j << 2), weightsStride, block, stride, min(BLOCK, count - j), width, to, toStride);
    }
    return;
  }
  for (let i = 0; i < rows; i++) mix(weights + <usize>i * weightsStride, values, stride, count, width, to + <usize>i * toStride);
}

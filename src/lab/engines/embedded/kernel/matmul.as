/**
 * Rows times a matrix, plus a bias. The matrix is packed in panels of eight outputs: for each input the eight weights lie side by side.
 * Whatever the tile, an output is one sum over the inputs in their order, so its bits do not depend on what else is computed with it.
 */

import { field } from './operation';
import { tile1, tile1x4, tile2, tile3, tile4, tile5, tile6 } from './tiles';

/** Inputs that are summed up before the next panel is looked at: a panel's part stays in the nearest cache. */
const INNER_BLOCK: i32 = 1024;
/** Bytes of a panel's part from which on it is worth fetching: a small model is in the caches anyway. */
const FETCHED: usize = 8192;
/** Bytes that come from memory together. */
const LINE: usize = 64;
/** Eight zeros, from which sums without a bias start. */
const ZEROS: usize = 64;

export function multiply(operation: usize, item: i32): void {
  const aStride = field(operation, 1);
  const rows = <i32>field(operation, 2);
  const inner = <i32>field(operation, 3);
  const panels = <i32>field(operation, 5);
  const bias = field(operation, 6);
  const cStride = field(operation, 8);
  const rowsPerItem = <i32>field(operation, 9);
  const panelsPerItem = <i32>field(operation, 10);
  const rowBlocks = (rows + rowsPerItem - 1) / rowsPerItem;
  const first = (item % rowBlocks) * rowsPerItem;
  const count = min(rowsPerItem, rows - first);
  const firstPanel = (item / rowBlocks) * panelsPerItem;
  const endPanel = min(firstPanel + panelsPerItem, panels);
  const a = field(operation, 0) + <usize>first * aStride;
  const c = field(operation, 7) + <usize>first * cStride;
  const weights = field(operation, 4);
  const panelBytes = <usize>inner << 5;
  const parts = (inner + INNER_BLOCK - 1) / INNER_BLOCK;
  const part = (inner + parts - 1) / parts;

  for (let start = 0; start < inner; start += part) {
    const length = min(part, inner - start);
    const from = a + (<usize>start << 2);
    let panel = firstPanel;
    if (count == 1) {
      for (; panel + 4 <= endPanel; panel += 4) {
        const to = c + (<usize>panel << 5);
        const sums = start ? to : bias ? bias + (<usize>panel << 5) : ZEROS;
        tile1x4(from, weights + <usize>panel * panelBytes + (<usize>start << 5), panelBytes, length, sums, start || bias ? 32 : 0, to);
      }
    }
    for (; panel < endPanel; panel++) {
      const to = c + (<usize>panel << 5);
      const sums = start ? to : bias ? bias + (<usize>panel << 5) : ZEROS;
      const b = weights + <usize>panel * panelBytes + (<usize>start << 5);
      fetch(b, <usize>length << 5);
      multiplyPanel(from, aStride, b, length, sums, start ? cStride : 0, to, cStride, count);
    }
  }
}

/**
 * Brings a part of a panel into the nearest cache, from eight places at once: the tiles would ask memory for one line after the other, and
 * wait for each. The loads stay although nobody uses what they load, because a load may trap.
 */
function fetch(b: usize, bytes: usize): void {
  if (bytes < FETCHED) return;
  const eighth = (bytes >> 3) & ~(LINE - 1);
  for (const end = b + eighth; b < end; b += LINE) {
    load<u32>(b);
    load<u32>(b + eighth);
    load<u32>(b + 2 * eighth);
    load<u32>(b + 3 * eighth);
    load<u32>(b + 4 * eighth);
    load<u32>(b + 5 * eighth);
    load<u32>(b + 6 * eighth);
    load<u32>(b + 7 * eighth);
  }
}

/** In as few tiles as there can be, and those as even as can be: one of two rows takes as long as one of four. */
function multiplyPanel(
  a: usize, aStride: usize, b: usize, inner: i32, sums: usize, sumsStride: usize, c: usize, cStride: usize, rows: i32,
): void {
  let left = rows;
  for (let tiles = (rows + 5) / 6; tiles; tiles--) {
    const count = (left + tiles - 1) / tiles;
    if (count == 6) tile6(a, aStride, b, inner, sums, sumsStride, c, cStride);
    else if (count == 5) tile5(a, aStride, b, inner, sums, sumsStride, c, cStride);
    else if (count == 4) tile4(a, aStride, b, inner, sums, sumsStride, c, cStride);
    else if (count == 3) tile3(a, aStride, b, inner, sums, sumsStride, c, cStride);
    else if (count == 2) tile2(a, aStride, b, inner, sums, sumsStride, c, cStride);
    else tile1(a, b, inner, sums, c);
    a += <usize>count * aStride;
    c += <usize>count * cStride;
    sums += <usize>count * sumsStride;
    left -= count;
  }
}

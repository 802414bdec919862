/**
 * Rows times a matrix, plus a bias. The matrix is packed in panels of eight outputs: for each input the eight weights lie side by side.
 * Whatever the tile, an output is one sum over the inputs in their order, so its bits do not depend on what else is computed with it.
 */

import { field } from './operation';
import { tile1, tile1x4, tile2, tile4, tile6 } from './tiles';

/** Inputs that are summed up before the next panel is looked at: a panel's part stays in the nearest cache. */
const INNER_BLOCK: i32 = 1024;
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
      multiplyPanel(from, aStride, weights + <usize>panel * panelBytes + (<usize>start << 5), length, sums, start ? cStride : 0, to, cStride, count);
    }
  }
}

function multiplyPanel(
  a: usize, aStride: usize, b: usize, inner: i32, sums: usize, sumsStride: usize, c: usize, cStride: usize, rows: i32,
): void {
  let left = rows;
  for (; left >= 6; left -= 6) {
    tile6(a, aStride, b, inner, sums, sumsStride, c, cStride);
    a += 6 * aStride;
    c += 6 * cStride;
    sums += 6 * sumsStride;
  }
  if (left >= 4) {
    tile4(a, aStride, b, inner, sums, sumsStride, c, cStride);
    a += 4 * aStride;
    c += 4 * cStride;
    sums += 4 * sumsStride;
    left -= 4;
  }
  if (left >= 2) {
    tile2(a, aStride, b, inner, sums, sumsStride, c, cStride);
    a += 2 * aStride;
    c += 2 * cStride;
    sums += 2 * sumsStride;
    left -= 2;
  }
  if (left) tile1(a, b, inner, sums, c);
}

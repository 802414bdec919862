/** Operations on whole rows: the sum of two, and looking up tokens. */

import { endRow, field, firstRow, numberField } from './operation';
import { loadSome, storeSome } from './vector';

/** Fields: what is added to, its stride, what is added, its stride, rows, width. */
export function addRows(operation: usize, item: i32): void {
  const width = <i32>field(operation, 5);
  const end = endRow(item, <i32>field(operation, 4));
  for (let row = firstRow(item); row < end; row++) {
    addRow(
      field(operation, 0) + <usize>row * field(operation, 1),
      field(operation, 2) + <usize>row * field(operation, 3),
      width,
    );
  }
}

/** Fields: to, its stride, rows, width, the packed embedding, positions' rows or 0, their stride, for each row its token and its position, what embeddings are multiplied by. */
export function embed(operation: usize, item: i32): void {
  const width = <i32>field(operation, 3);
  const positions = field(operation, 5);
  const scale = numberField(operation, 8);
  const end = endRow(item, <i32>field(operation, 2));
  for (let row = firstRow(item); row < end; row++) {
    const to = field(operation, 0) + <usize>row * field(operation, 1);
    const about = field(operation, 7) + (<usize>row << 3);
    const token = <usize>load<u32>(about);
    const from = field(operation, 4) + (token >> 3) * (<usize>width << 5) + ((token & 7) << 2);
    for (let i = 0; i < width; i++) store<f32>(to + (<usize>i << 2), load<f32>(from + (<usize>i << 5)) * scale);
    if (positions) addRow(to, positions + <usize>load<u32>(about, 4) * field(operation, 6), width);
  }
}

function addRow(to: usize, from: usize, width: i32): void {
  for (let i = 0; i < width; i += 4) {
    const at = <usize>i << 2;
    storeSome(to + at, f32x4.add(loadSome(to + at, width - i), loadSome(from + at, width - i)), width - i);
  }
}

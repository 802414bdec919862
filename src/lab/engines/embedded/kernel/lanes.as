/**
 * A lane is one text that is computed: rows of it are in the batch, and what came before is in a store of keys and values. Both the rows'
 * table and the lanes' table are written by `lanes-table.ts`.
 */

/** Of a row: its lane, and its position in the lane's text. */
@inline
export function laneOf(rows: usize, lanes: usize, row: i32): usize {
  return lanes + <usize>load<u32>(rows + (<usize>row << 3)) * 32;
}

@inline
export function positionOf(rows: usize, row: i32): i32 {
  return load<i32>(rows + (<usize>row << 3), 4);
}

/** Where the keys of the positions before those of the lane's own begin, for a layer. */
@inline
export function sharedKeys(lane: usize, layer: usize): usize {
  return <usize>load<u32>(lane) + layer * sharedLayerBytes(lane);
}

/** Of keys and values of a layer: the values are the second half. In each half are the heads one after the other, each with all of its positions. */
@inline
export function sharedLayerBytes(lane: usize): usize {
  return <usize>load<u32>(lane, 4);
}

/** How many positions are taken from the shared store: fewer in the layers that the lane has changed. */
@inline
export function sharedLength(lane: usize, layer: usize): i32 {
  return layer < <usize>load<u32>(lane, 16) ? load<i32>(lane, 12) : load<i32>(lane, 8);
}

/** The lane's own store, or 0 where its keys and values are only in the batch. */
@inline
export function ownKeys(lane: usize, layer: usize): usize {
  const own = <usize>load<u32>(lane, 20);
  return own ? own + layer * ownLayerBytes(lane) : 0;
}

@inline
export function ownLayerBytes(lane: usize): usize {
  return <usize>load<u32>(lane, 24);
}

/** The lane's first row in the batch. */
@inline
export function laneRow(lane: usize): usize {
  return <usize>load<u32>(lane, 28);
}

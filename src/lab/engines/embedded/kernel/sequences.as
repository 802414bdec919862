/**
 * A sequence is one text that is computed: rows of it are in the batch, and what came before is in a store of keys and values. Both the rows'
 * table and the sequences' table are written by `sequence.ts` and `batch.ts`.
 */

/** Of one sequence in the table. */
const SEQUENCE_BYTES: usize = 36;

/** Of a row: its sequence, and its position in the sequence's text. */
@inline
export function sequenceOf(rows: usize, sequences: usize, row: i32): usize {
  return sequences + <usize>load<u32>(rows + (<usize>row << 3)) * SEQUENCE_BYTES;
}

@inline
export function positionOf(rows: usize, row: i32): i32 {
  return load<i32>(rows + (<usize>row << 3), 4);
}

/** Where the keys of the positions before those of the sequence's own begin, for a layer. */
@inline
export function sharedKeys(sequence: usize, layer: usize): usize {
  return <usize>load<u32>(sequence) + layer * sharedLayerBytes(sequence);
}

/** Of keys and values of a layer: the values are the second half. In each half are the heads one after the other, each with all of its positions. */
@inline
export function sharedLayerBytes(sequence: usize): usize {
  return <usize>load<u32>(sequence, 4);
}

/** How many positions are taken from the shared store: fewer in the layers that the sequence has changed. */
@inline
export function sharedLength(sequence: usize, layer: usize): i32 {
  return layer < <usize>load<u32>(sequence, 16) ? load<i32>(sequence, 12) : load<i32>(sequence, 8);
}

/** The sequence's own store, or 0 where its keys and values are only in the batch. */
@inline
export function ownKeys(sequence: usize, layer: usize): usize {
  const own = <usize>load<u32>(sequence, 20);
  return own ? own + layer * ownLayerBytes(sequence) : 0;
}

@inline
export function ownLayerBytes(sequence: usize): usize {
  return <usize>load<u32>(sequence, 24);
}

/** The sequence's first row in the batch. */
@inline
export function sequenceRow(sequence: usize): usize {
  return <usize>load<u32>(sequence, 28);
}

/** How many tokens the sequence's whole text has. */
@inline
export function textLength(sequence: usize): i32 {
  return load<i32>(sequence, 32);
}

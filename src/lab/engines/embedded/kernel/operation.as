/** How an operation lies in memory: a head that threads share the work by, then its own fields. `operations.ts` writes them. */

/** Which operation it is. */
export const KIND: usize = 0;
/** Into how many items its work is cut. Each item is done by one thread, always in the same way. */
export const ITEMS: usize = 4;
/** The number of the program (high half) and of the next item that nobody has taken (low half). */
export const NEXT: usize = 8;
/** How many items are done. */
export const DONE: usize = 16;
/** How many threads sleep until all are done. */
export const SLEEPERS: usize = 20;
/** Bytes of one operation. */
export const SIZE: usize = 128;

/** A field of an operation, by its number. */
@inline
export function field(operation: usize, number: usize): usize {
  return load<u32>(operation + 32 + (number << 2));
}

@inline
export function numberField(operation: usize, number: usize): f32 {
  return load<f32>(operation + 32 + (number << 2));
}

/** The rows that an item of an operation on rows is about. */
export const ROWS_PER_ITEM: i32 = 4;

@inline
export function firstRow(item: i32): i32 {
  return item * ROWS_PER_ITEM;
}

@inline
export function endRow(item: i32, rows: i32): i32 {
  return min((item + 1) * ROWS_PER_ITEM, rows);
}

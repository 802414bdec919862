/**
 * The events of one call, numbered from 1, for any number of readers that come, go and come back. Each event is kept once: few in memory,
 * many on the disk. A reader is given bytes only when it asks for them, so a slow one holds up nobody and nothing piles up for it.
 */

import type { Spill, Spills } from '../files/spill.ts';
import { encodePieces } from './json-answer.ts';

export interface EventLog {
  /** Adds an event, as JSON. A promise says when there is room in memory for more; what comes after the last event is dropped. */
  add(json: string): Promise<void> | undefined;
  /** Adds the last event. It is read from where it is kept, for each reader. */
  end(last: LastEvent): void;
  /** All events after that number, those that are there and those to come. */
  read(after: number): EventReader;
  /** Forgets everything; who still reads comes to an end. */
  remove(): void;
  readonly isEnded: boolean;
  /** Bytes that are kept. */
  readonly size: number;
  readonly isOnDisk: boolean;
}

export interface LastEvent {
  /** Its JSON. */
  pieces(): AsyncIterable<string | Uint8Array>;
  /** Bytes that are kept on the disk for it. */
  readonly size: number;
  /** Called when nobody can ask for it any more. */
  release(): void;
}

export interface EventReader {
  /** The next bytes, once there are any; nothing after the last event, or after `leave`. */
  next(): Promise<Uint8Array | undefined>;
  /** True while it has had all events up to now, whole, and waits for another. */
  readonly isWaiting: boolean;
  leave(): void;
}

/** What stands around an event on the wire. An end of line stands only here: JSON on one line has none. */
export interface Frame {
  before(number: number): string;
  after: string;
}

/** Bytes: of a log that is held in memory, of what a reader is given at once, and between two places that are noted for those who come back. */
const IN_MEMORY = 16 << 10;
const PIECE = 64 << 10;
const BETWEEN_NOTES = 1 << 20;
const NEWLINE = 10;

export function createEventLog(spills: Spills, frame: Frame): EventLog {
  const spill = spills.create(IN_MEMORY);
  const wakers = new Set<() => void>();
  /** Where some of the events end, the first of them before all. */
  const notes = [{ number: 0, offset: 0 }];
  let count = 0;
  let last: LastEvent | undefined;
  let isRemoved = false;

  function wakeAll(): void {
    for (const wake of wakers) wake();
    wakers.clear();
  }

  function note(): void {
    const { size } = spill;
    if (size - (notes.at(-1)?.offset ?? 0) >= BETWEEN_NOTES) notes.push({ number: count, offset: size });
  }

  async function offsetAfter(number: number): Promise<number> {
    if (number >= count) return spill.size;
    const from = notes.findLast((one) => one.number <= number) ?? { number: 0, offset: 0 };
    const lines = (number - from.number) * newlinesIn(frame.before(1) + frame.after);
    return skipLines(spill, from.offset, lines);
  }

  return {
    add(json) {
      if (last || isRemoved) return undefined;
      count += 1;
      spill.add(`${frame.before(count)}${json}${frame.after}`);
      note();
      wakeAll();
      return spill.room();
    },
    end(event) {
      if (isRemoved) return event.release();
      last = event;
      wakeAll();
    },
    read(after) {
      let offset: number | undefined;
      let lastPieces: AsyncIterator<Uint8Array> | undefined;
      let isWaiting = false;
      let isGone = false;
      let wake = () => {};

      async function nextPiece(): Promise<Uint8Array | undefined> {
        const isPast = offset === undefined && last !== undefined && after > count;
        if (isPast) return undefined;
        offset ??= await offsetAfter(after);
        while (!isGone && !isRemoved) {
          if (offset < spill.size) {
            const piece = await spill.read(offset, Math.min(PIECE, spill.size - offset));
            offset += piece.length;
            return piece;
          }
          if (last) {
            lastPieces ??= framed(last, frame, count + 1);
            const { done, value } = await lastPieces.next();
            return done ? undefined : value;
          }
          isWaiting = true;
          await new Promise<void>((resolve) => {
            wake = resolve;
            wakers.add(resolve);
          });
          isWaiting = false;
        }
        return undefined;
      }

      return {
        async next() {
          try {
            return await nextPiece();
          } catch (error) {
            if (isGone || isRemoved) return undefined;
            throw error;
          }
        },
        get isWaiting() {
          return isWaiting;
        },
        leave() {
          isGone = true;
          wakers.delete(wake);
          wake();
        },
      };
    },
    remove() {
      isRemoved = true;
      spill.close();
      last?.release();
      wakeAll();
    },
    get isEnded() {
      return last !== undefined;
    },
    get size() {
      return spill.size + (last?.size ?? 0);
    },
    get isOnDisk() {
      return spill.isOnDisk || (last !== undefined && last.size > 0);
    },
  };
}

function framed({ pieces }: LastEvent, { before, after }: Frame, number: number): AsyncIterator<Uint8Array> {
  async function* all() {
    yield before(number);
    yield* pieces();
    yield after;
  }
  return encodePieces(all());
}

async function skipLines(spill: Spill, from: number, lines: number): Promise<number> {
  let offset = from;
  for (let left = lines; left > 0; ) {
    const piece = await spill.read(offset, PIECE);
    let start = 0;
    for (; left > 0; left -= 1) {
      const end = piece.indexOf(NEWLINE, start);
      if (end === -1) break;
      start = end + 1;
    }
    offset += left > 0 ? piece.length : start;
  }
  return offset;
}

function newlinesIn(text: string): number {
  return text.split('\n').length - 1;
}

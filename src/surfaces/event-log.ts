/**
 * A bounded, resumable log: the events of one call, numbered from 1, for any number of readers that come, go and come back. Each event
 * is kept once, in memory while they are few and on the disk once they are many; beyond the bound, the oldest are dropped, and a reader
 * is told how many it has missed, or where things stand now. A reader is given bytes only when it asks for them (backpressure), so a slow
 * one holds up nobody.
 */

import type { Spill, Spills } from '../files/spill.ts';
import { encodePieces } from './json-answer.ts';

export interface EventLog {
  /** Adds an event. A promise says when there is room in memory for more; what comes after the end is ignored. */
  add(event: string): Promise<void> | undefined;
  /** Ends the log, with a last event if one is given. That is read from where it is kept, for each reader. */
  end(last?: LastEvent): void;
  /** All events after that number, those that are there and those to come; `now`: where things stand, and what comes. */
  read(after: number | 'now'): EventReader;
  /** Deletes everything; readers come to an end. */
  remove(): void;
  readonly isEnded: boolean;
  /** The number of the newest event. */
  readonly last: number;
  /** Bytes that are kept. */
  readonly size: number;
  readonly isOnDisk: boolean;
}

export interface LastEvent {
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

/** How events are written. A line feed stands only in what is around an event, never in one. */
export interface EventFormat {
  before(number: number): string;
  after: string;
  /** The event in place of those that were dropped. */
  dropped(notice: string): string;
}

export interface EventLogOptions {
  spills: Spills;
  format: EventFormat;
  /** Bytes to keep; the newest events stay, however large. */
  most: number;
  /** An event that tells where things stand, to a reader that begins now or has missed events; it goes on after the newest. */
  snapshot?(): string;
  onEnd?(): void;
}

/** A part of the log. It is dropped as a whole, once no reader is in the middle of it. */
interface Segment {
  spill: Spill;
  /** The number of the event before its first. */
  before: number;
  count: number;
  /** Where some of its events end, the first of them before all. */
  notes: { number: number; offset: number }[];
  readers: number;
}

/** Bytes: of a segment that is held in memory, of what a reader is given at once, and between two notes. */
const IN_MEMORY = 16 << 10;
const PIECE = 64 << 10;
const BETWEEN_NOTES = 1 << 20;
const NEWLINE = 10;

export function createEventLog({ spills, format, most, snapshot, onEnd }: EventLogOptions): EventLog {
  const wakers = new Set<() => void>();
  let newest = createSegment(0);
  /** Oldest first. */
  const segments = [newest];
  /** Dropped, and still read by somebody. */
  const dropped = new Set<Segment>();
  let last: LastEvent | undefined;
  let isEnded = false;
  let isRemoved = false;

  function createSegment(before: number): Segment {
    return { spill: spills.create(IN_MEMORY), before, count: 0, notes: [{ number: before, offset: 0 }], readers: 0 };
  }

  const sizeOfAll = () => segments.reduce((sum, { spill }) => sum + spill.size, 0);

  function dropOldest(): void {
    if (newest.spill.size <= most / 2) return;
    newest = createSegment(newest.before + newest.count);
    segments.push(newest);
    while (segments.length > 2 && sizeOfAll() > most) {
      const oldest = segments.shift();
      if (oldest?.readers === 0) oldest.spill.close();
      else if (oldest) dropped.add(oldest);
    }
  }

  function wakeAll(): void {
    for (const wake of wakers) wake();
    wakers.clear();
  }

  async function offsetAfter({ spill, before, count, notes }: Segment, number: number): Promise<number> {
    if (number >= before + count) return spill.size;
    const from = notes.findLast((note) => note.number <= number) ?? { number: before, offset: 0 };
    const lines = (number - from.number) * newlinesIn(format.before(1) + format.after);
    return skipLines(spill, from.offset, lines);
  }

  return {
    add(event) {
      if (isEnded || isRemoved) return undefined;
      const { spill, notes } = newest;
      newest.count += 1;
      const number = newest.before + newest.count;
      spill.add(`${format.before(number)}${event}${format.after}`);
      if (spill.size - (notes.at(-1)?.offset ?? 0) >= BETWEEN_NOTES) notes.push({ number, offset: spill.size });
      dropOldest();
      wakeAll();
      return spill.room();
    },
    end(event) {
      if (isRemoved) return event?.release();
      last = event;
      isEnded = true;
      wakeAll();
      onEnd?.();
    },
    read(after) {
      let segment: Segment | undefined;
      let offset = 0;
      let lastPieces: AsyncIterator<Uint8Array> | undefined;
      let isWaiting = false;
      let isGone = false;
      let isFresh = after === 'now';
      let wake = () => {};

      function leaveSegment(): void {
        if (!segment) return;
        segment.readers -= 1;
        if (segment.readers === 0 && dropped.delete(segment)) segment.spill.close();
        segment = undefined;
      }

      /** Goes on after an event; says how many of the next ones were dropped. */
      async function enter(number: number): Promise<number> {
        leaveSegment();
        const found = segments.findLast(({ before }) => before <= number) ?? segments[0] ?? newest;
        segment = found;
        found.readers += 1;
        offset = await offsetAfter(found, Math.max(number, found.before));
        return Math.max(0, found.before - number);
      }

      async function nextPiece(): Promise<Uint8Array | undefined> {
        while (!isGone && !isRemoved) {
          if (isFresh) return readSnapshot();
          const isAtEnd = segment !== undefined && segment !== newest && offset === segment.spill.size;
          if (!segment || isAtEnd) {
            const missed = await enter(segment ? segment.before + segment.count : Number(after));
            isFresh = missed > 0 && snapshot !== undefined;
            if (missed > 0 && segment && !isFresh) return noticeOf(missed, segment.before);
            continue;
          }
          if (offset < segment.spill.size) {
            const piece = await segment.spill.read(offset, Math.min(PIECE, segment.spill.size - offset));
            offset += piece.length;
            return piece;
          }
          if (isEnded) return nextOfLast(newest.before + newest.count + 1);
          isWaiting = true;
          await new Promise<void>((resolve) => {
            wake = resolve;
            wakers.add(resolve);
          });
          isWaiting = false;
        }
        return undefined;
      }

      /** Nothing is awaited between the snapshot and the place that is gone on from, so that it has all before that and nothing after. */
      async function readSnapshot(): Promise<Uint8Array> {
        isFresh = false;
        const event = snapshot?.() ?? ''; // It may add the events that it takes for told.
        const number = newest.before + newest.count;
        await enter(number);
        return Buffer.from(`${format.before(number)}${event}${format.after}`);
      }

      async function nextOfLast(number: number): Promise<Uint8Array | undefined> {
        if (!last || (after !== 'now' && after >= number)) return undefined;
        lastPieces ??= encodePieces(around(format, number, last));
        const { done, value } = await lastPieces.next();
        return done ? undefined : value;
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
          if (isGone) return;
          isGone = true;
          leaveSegment();
          wakers.delete(wake);
          wake();
        },
      };
    },
    remove() {
      isRemoved = true;
      for (const { spill } of [...segments, ...dropped]) spill.close();
      last?.release();
      wakeAll();
    },
    get isEnded() {
      return isEnded;
    },
    get last() {
      return newest.before + newest.count;
    },
    get size() {
      return sizeOfAll() + (last?.size ?? 0);
    },
    get isOnDisk() {
      return segments.some(({ spill }) => spill.isOnDisk) || (last !== undefined && last.size > 0);
    },
  };

  function noticeOf(missed: number, number: number): Uint8Array {
    const event = format.dropped(`[${missed} events were dropped here: they came faster than they were read.]\n`);
    return Buffer.from(`${format.before(number)}${event}${format.after}`);
  }
}

async function* around({ before, after }: EventFormat, number: number, { pieces }: LastEvent) {
  yield before(number);
  yield* pieces();
  yield after;
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

import { describe, expect, it, onTestFinished } from 'vitest';
import { openSpills } from '../../src/files/spill.ts';
import {
  createEventLog,
  type EventFormat,
  type EventLog,
  type EventReader,
  type LastEvent,
} from '../../src/surfaces/event-log.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const format: EventFormat = {
  before: (number) => `id: ${number}\ndata: `,
  after: '\n\n',
  dropped: (notice) => JSON.stringify({ dropped: Number.parseInt(notice.slice(1), 10) }),
};

async function makeLog(most = 1 << 30): Promise<EventLog> {
  const spills = await openSpills(temporaryFolder());
  const log = createEventLog({ spills, format, most });
  onTestFinished(() => log.remove());
  return log;
}

function lastOf(...pieces: string[]): LastEvent & { isReleased: boolean } {
  return {
    async *pieces() {
      yield* pieces;
    },
    size: 0,
    isReleased: false,
    release() {
      this.isReleased = true;
    },
  };
}

async function rest(reader: EventReader): Promise<string> {
  const pieces: Uint8Array[] = [];
  for (let piece = await reader.next(); piece; piece = await reader.next()) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

const numbersIn = (text: string) => [...text.matchAll(/^id: (\d+)$/gm)].map(([, number]) => Number(number));
const from = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, index) => first + index);

describe('a reader of an event log', () => {
  it('is told all events, the last one from its pieces', async () => {
    const log = await makeLog();
    log.add('{"a":1}');
    log.add('{"b":"\\n"}');
    log.end(lastOf('{"do', 'ne":1}'));
    const expected = 'id: 1\ndata: {"a":1}\n\nid: 2\ndata: {"b":"\\n"}\n\nid: 3\ndata: {"done":1}\n\n';
    expect(await rest(log.read(0))).toBe(expected);
    expect(await rest(log.read(0)), 'as often as one asks').toBe(expected);
  });

  it.each([0, 1, 20, 3999, 4000, 4001])(
    'that has seen %i is told the events after that, and no other',
    async (seen) => {
      const log = await makeLog();
      // Long enough for the disk, and for several places to be noted.
      for (const number of from(1, 4000)) await log.add(JSON.stringify({ number, text: 'x'.repeat(number % 2000) }));
      log.end(lastOf('{}'));
      expect(log.isOnDisk).toBe(true);
      expect(numbersIn(await rest(log.read(seen)))).toEqual(from(seen + 1, 4001));
    },
  );

  it('waits for the next event, and is not told half of one', async () => {
    const log = await makeLog();
    const reader = log.read(0);
    const first = reader.next();
    await expect.poll(() => reader.isWaiting).toBe(true);
    log.add('{"a":1}');
    expect(Buffer.from((await first) ?? []).toString()).toBe('id: 1\ndata: {"a":1}\n\n');
    const second = reader.next();
    await expect.poll(() => reader.isWaiting).toBe(true);
    log.end(lastOf('{}'));
    expect(Buffer.from((await second) ?? []).toString()).toBe('id: 2\ndata: {}\n\n');
    expect(await reader.next()).toBeUndefined();
  });

  it('goes at its own pace beside others, and may leave in the middle', async () => {
    const log = await makeLog();
    const [slow, quick, leaving] = [log.read(0), log.read(0), log.read(0)];
    const told = rest(quick);
    for (const number of from(1, 3000)) {
      await log.add(JSON.stringify({ number, text: 'x'.repeat(500) }));
      if (number === 1000) await leaving.next();
    }
    leaving.leave();
    log.end(lastOf('{}'));
    expect(await leaving.next()).toBeUndefined();
    expect(numbersIn(await told)).toEqual(from(1, 3001));
    expect(numbersIn(await rest(slow))).toEqual(from(1, 3001));
  });

  it('that waits is woken by its own leaving, and by the end of the log', async () => {
    const log = await makeLog();
    const [one, other] = [log.read(0), log.read(0)];
    const waits = [one.next(), other.next()];
    await expect.poll(() => other.isWaiting).toBe(true);
    one.leave();
    expect(await waits[0]).toBeUndefined();
    log.remove();
    expect(await waits[1]).toBeUndefined();
  });
});

describe('an event log that holds as many bytes as it may', () => {
  const LINE = JSON.stringify({ text: 'x'.repeat(500) });

  it('keeps the newest events, and tells a new reader how many were dropped before them', async () => {
    const log = await makeLog(100_000);
    for (const _ of from(1, 1000)) await log.add(LINE);
    log.end(lastOf('{}'));
    expect(log.size).toBeLessThanOrEqual(100_000);
    const told = await rest(log.read(0));
    const [first = 0, ...others] = numbersIn(told);
    expect(told).toContain(`id: ${first}\ndata: {"dropped":${first}}\n\n`);
    expect(first).toBeGreaterThan(700);
    expect(others).toEqual(from(first + 1, 1001));
  });

  it('tells a slow reader what it was in the middle of, whole, and then how many it has missed', async () => {
    const log = await makeLog(400_000);
    for (const _ of from(1, 300)) await log.add(LINE);
    const reader = log.read(0);
    const pieces = [await reader.next()];
    for (const _ of from(301, 3000)) await log.add(LINE);
    log.end(lastOf('{}'));
    pieces.push(Buffer.from(await rest(reader)));
    const told = Buffer.concat(pieces.map((piece) => piece ?? Buffer.alloc(0))).toString();
    const numbers = numbersIn(told);
    const gap = numbers.findIndex((number, index) => number !== index + 1);
    const next = numbers[gap] ?? 0;
    expect(numbers).toEqual([...from(1, gap), ...from(next, 3001)]);
    expect(told).toContain(`id: ${next}\ndata: {"dropped":${next - gap}}\n\n`);
    expect(told.split('\n\n').every((event) => event === '' || /^id: \d+\ndata: {.*}$/.test(event))).toBe(true);
  });

  it('keeps an event that is larger than that', async () => {
    const log = await makeLog(1000);
    await log.add(LINE);
    await log.add(JSON.stringify({ text: 'y'.repeat(5000) }));
    log.end();
    expect(await rest(log.read(1))).toContain('y'.repeat(5000));
  });
});

describe('an event log', () => {
  it('may end without a last event', async () => {
    const log = await makeLog();
    log.add('{"a":1}');
    log.end();
    expect(await rest(log.read(0))).toBe('id: 1\ndata: {"a":1}\n\n');
    expect(await rest(log.read(1))).toBe('');
  });

  it('drops what comes after its last event', async () => {
    const log = await makeLog();
    log.end(lastOf('{}'));
    log.add('{"late":1}');
    expect(await rest(log.read(0))).toBe('id: 1\ndata: {}\n\n');
  });

  it('gives its last event up when it is removed, or was before', async () => {
    const [log, other] = [await makeLog(), await makeLog()];
    const [last, late] = [lastOf('{}'), lastOf('{}')];
    log.end(last);
    expect(last.isReleased).toBe(false);
    log.remove();
    other.remove();
    other.end(late);
    expect([last.isReleased, late.isReleased]).toEqual([true, true]);
  });
});

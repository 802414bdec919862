import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { openSpills, type Spills } from '../../../src/files/spill.ts';
import type { Lab } from '../../../src/lab/core/lab.ts';
import type { LabCallEvent } from '../../../src/lab/remote/lab-protocol.ts';
import { createLog } from '../../../src/log.ts';
import type { EventReader } from '../../../src/surfaces/event-log.ts';
import { createLabCalls, type LabCallLimits } from '../../../src/surfaces/lab/lab-calls.ts';
import { createFakeLab } from '../../lab/fake-lab.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

let spills: Spills;
const MINUTE = 60_000;
const OVER = expect.objectContaining({ code: 'call_over', status: 410 });

beforeEach(async () => {
  spills = await openSpills(temporaryFolder());
  vi.useFakeTimers();
});
afterEach(() => void vi.useRealTimers());

function open(limits: Partial<LabCallLimits> = {}) {
  const fake = createFakeLab();
  const made = createLabCalls({ lab: fake.lab, spills, log: createLog('silent'), limits });
  const find = (id: string | undefined, args: Record<string, unknown> = {}, name = 'capture_acts') =>
    made.find({ id, name, args, isJoin: false });
  const join = (id: string) => made.find({ id, name: 'capture_acts', args: {}, isJoin: true });
  /** Runs a call to its end. */
  const finish = async (id: string, answer: Record<string, unknown> = { id }) => {
    const listener = find(id).listen(0);
    (await fake.started(fake.calls.length - 1)).answer(answer);
    const events = await allOf(listener);
    listener.leave();
    return events;
  };
  return { ...fake, find, join, finish, stop: made.stop };
}

async function allOf(reader: EventReader): Promise<LabCallEvent[]> {
  const events: LabCallEvent[] = [];
  for (let some = await nextOf(reader); some.length > 0; some = await nextOf(reader)) events.push(...some);
  return events;
}

/** Those that come at once. */
async function nextOf(reader: EventReader): Promise<LabCallEvent[]> {
  const lines = Buffer.from((await reader.next()) ?? []).toString();
  return lines === ''
    ? []
    : lines
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as LabCallEvent);
}

describe('the id of a call that comes again to a lab', () => {
  test('joins the call while it runs, from the event that it says', async () => {
    const { find, calls } = open();
    const first = find('a').listen(0);
    calls[0]?.context.progress('one');
    calls[0]?.context.output?.({ type: 'stream', name: 'stdout', text: 'printed' });
    const second = find('a').listen(1);
    calls[0]?.answer({ kept: 1 });
    const events = await allOf(first);
    expect(events).toEqual([
      { number: 1, progress: 'one' },
      { number: 2, output: { type: 'stream', name: 'stdout', text: 'printed' } },
      { number: 3, answer: { kept: 1 } },
    ]);
    expect(await allOf(second)).toEqual(events.slice(1));
    expect(calls).toHaveLength(1);
  });

  test('gets the same answer, or the same error, once it has ended', async () => {
    const { find, join, finish, calls } = open();
    const answered = await finish('a');
    expect(answered).toEqual([{ number: 1, answer: { id: 'a' } }]);
    expect(await allOf(join('a').listen(0))).toEqual(answered);
    const failing = find('b').listen(0);
    calls[1]?.fail(new Error('no such thing'));
    const events = await allOf(failing);
    expect(events).toEqual([{ number: 1, error: { code: 'internal', message: 'no such thing' } }]);
    expect(await allOf(find('b').listen(0))).toEqual(events);
    expect(calls).toHaveLength(2);
  });

  test('with another primitive or other arguments is refused, in whatever order they are written', async () => {
    const { find, calls } = open();
    find('a', { x: 1, y: 2 });
    expect(() => find('a', { x: 1 })).toThrow(expect.objectContaining({ code: 'invalid_input' }));
    expect(() => find('a', { x: 1, y: 2 }, 'train_probe')).toThrow(expect.objectContaining({ code: 'invalid_input' }));
    find('a', { y: 2, x: 1 });
    expect(calls).toHaveLength(1);
  });

  test('and is only to be joined starts nothing where it is not known', () => {
    const { join, calls } = open();
    expect(() => join('a')).toThrow(expect.objectContaining({ code: 'unknown_call', status: 404 }));
    expect(calls).toHaveLength(0);
  });
});

describe('what a lab remembers of ended calls', () => {
  test('goes after ten minutes', async () => {
    const { finish, join } = open();
    await finish('a');
    await vi.advanceTimersByTimeAsync(10 * MINUTE - 1);
    join('a');
    await vi.advanceTimersByTimeAsync(1);
    expect(() => join('a')).toThrow(OVER);
  });

  test('is of two hundred calls, and the oldest go first', async () => {
    const { finish, find, join } = open();
    find('running');
    for (let i = 0; i < 201; i++) await finish(`call-${i}`);
    expect(() => join('call-0')).toThrow(OVER);
    join('call-1');
    join('call-200');
    join('running');
  });

  test('is of so many characters, but of the latest in any case', async () => {
    const { finish, join } = open({ mostKept: 1000 });
    await finish('a', { text: 'x'.repeat(600) });
    await finish('b', { text: 'x'.repeat(300) });
    join('a');
    await finish('c', { text: 'x'.repeat(300) });
    expect(() => join('a')).toThrow(OVER);
    join('b');
    await finish('d', { text: 'x'.repeat(5000) });
    expect(() => join('c')).toThrow(OVER);
    expect(await allOf(join('d').listen(0))).toEqual([{ number: 1, answer: { text: 'x'.repeat(5000) } }]);
  });

  test('of one that tells much is what it told last', async () => {
    const { find, calls } = open({ mostKept: 1000 });
    find('a').listen(0);
    for (let i = 1; i <= 100; i++) calls[0]?.context.progress(`${i}`.padStart(80, '.'));
    calls[0]?.answer({ kept: 1 });
    await vi.advanceTimersByTimeAsync(0);
    const events = await allOf(find('a').listen(0));
    expect(events.length).toBeLessThan(15);
    expect(events.map(({ number }) => number)).toEqual(events.map((_, i) => 102 - events.length + i));
    expect(events.at(-1)).toEqual({ number: 101, answer: { kept: 1 } });
  });
});

describe('a call of a lab whose listener is slow', () => {
  test('tells it how much it has missed, where that was', async () => {
    const { find, calls } = open({ mostKept: 1000 });
    const reader = find('a').listen(0);
    const print = (text: string) => calls[0]?.context.output?.({ type: 'stream', name: 'stdout', text });
    print('first');
    expect(await nextOf(reader)).toMatchObject([{ number: 1, output: { text: 'first' } }]);
    for (let i = 2; i <= 100; i++) print(`${i}`.padStart(100, '.'));
    calls[0]?.answer({ kept: 1 });
    await vi.advanceTimersByTimeAsync(0);
    const events = await allOf(reader);
    const numbers = events.map(({ number }) => number ?? 0);
    const gap = numbers.findIndex((number, index) => number !== index + 2);
    const dropped = (numbers[gap] ?? 0) - gap - 1;
    expect(dropped).toBeGreaterThan(80);
    expect(events[gap]).toEqual({
      number: gap + 1 + dropped,
      output: { type: 'stream', name: 'stderr', text: expect.stringContaining(`[${dropped} events were dropped`) },
    });
    expect(numbers.slice(gap)).toEqual(numbers.slice(gap).map((_, index) => (numbers[gap] ?? 0) + index));
    expect(events.at(-1)).toEqual({ number: 101, answer: { kept: 1 } });
  });

  test('tells nothing of the kind if it has missed nothing', async () => {
    const { find, calls } = open({ mostKept: 1000 });
    const reader = find('a').listen(0);
    for (let i = 1; i <= 50; i++) {
      calls[0]?.context.progress(`${i}`.padStart(100, '.'));
      expect(await nextOf(reader)).toMatchObject([{ number: i, progress: expect.any(String) }]);
    }
  });

  test('leaves what it does not read on the disk, and is told all of it in the end', async () => {
    vi.useRealTimers();
    const { find, calls } = open();
    const reader = find('a').listen(0);
    const text = 'x'.repeat(100_000);
    for (let i = 1; i <= 50; i++) calls[0]?.context.output?.({ type: 'stream', name: 'stdout', text });
    calls[0]?.answer({ kept: 1 });
    await new Promise(setImmediate);
    const lines = [];
    for (let piece = await reader.next(); piece; piece = await reader.next()) lines.push(piece);
    const numbers = Buffer.concat(lines)
      .toString()
      .match(/^{"number":\d+/gm);
    expect(numbers).toEqual(Array.from({ length: 51 }, (_, index) => `{"number":${index + 1}`));
  });
});

test.each(['answers', 'fails'])('the arguments of a call that %s are not kept with it', async (how) => {
  vi.useRealTimers();
  const lab: Lab = {
    call: async () => {
      if (how === 'answers') return { kept: 1 };
      throw new Error('no such thing');
    },
    close: async () => {},
  };
  const calls = createLabCalls({ lab, spills, log: createLog('silent') });
  const finish = async () => {
    const args = { prompt: 'x'.repeat(1000) };
    await allOf(calls.find({ id: 'a', name: 'capture_acts', args, isJoin: false }).listen(0));
    return new WeakRef(args);
  };
  const args = await finish();
  await vi.waitFor(() => {
    collectGarbage();
    // The object itself, in an error, would be kept by that.
    expect(args.deref() === undefined).toBe(true);
  }, 60_000);
  expect(() => calls.find({ id: 'a', name: 'capture_acts', args: {}, isJoin: true })).toThrow(/other arguments/);
});

describe('a call of a lab that nobody listens to', () => {
  test('goes on for a minute, and is stopped and forgotten then', async () => {
    const { find, join, calls } = open();
    find('a').listen(0).leave();
    await vi.advanceTimersByTimeAsync(MINUTE - 1);
    expect(calls[0]?.context.signal.aborted).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(calls[0]?.context.signal.aborted).toBe(true);
    expect(() => join('a')).toThrow(OVER);
  });

  test('goes on for good if somebody joins in that time, or another still listens', async () => {
    const { find, calls } = open();
    const [one, two] = [find('a').listen(0), find('a').listen(0)];
    one.leave();
    one.leave();
    await vi.advanceTimersByTimeAsync(5 * MINUTE);
    two.leave();
    await vi.advanceTimersByTimeAsync(MINUTE / 2);
    const three = find('a').listen(0);
    await vi.advanceTimersByTimeAsync(5 * MINUTE);
    expect(calls[0]?.context.signal.aborted).toBe(false);
    calls[0]?.answer({ kept: 1 });
    expect(await allOf(three)).toEqual([{ number: 1, answer: { kept: 1 } }]);
  });

  test('ends with its caller if it has no id', async () => {
    const { find, calls } = open();
    find(undefined).listen(0).leave();
    expect(calls[0]?.context.signal.aborted).toBe(true);
  });
});

describe('a call of a lab that is stopped', () => {
  test('ends at once, for all who listen, and its id does not run again', async () => {
    const { find, join, stop, calls } = open();
    const listener = find('a').listen(0);
    stop('a');
    expect(calls[0]?.context.signal.aborted).toBe(true);
    expect(await allOf(listener)).toMatchObject([{ error: { message: expect.stringMatching(/abort/i) } }]);
    expect(() => join('a')).toThrow(OVER);
    expect(() => find('a')).toThrow(OVER);
    expect(calls).toHaveLength(1);
  });

  test('is known as such until many others are over', async () => {
    const { find, join, finish } = open({ mostEnded: 1, mostOver: 2 });
    for (const id of ['a', 'b', 'c']) await finish(id);
    expect(() => find('a')).toThrow(OVER);
    await finish('d');
    expect(() => join('a')).toThrow(/knows no call a/);
    expect(() => join('b')).toThrow(OVER);
  });

  test('is refused as unknown if it is not there', () => {
    expect(() => open().stop('a')).toThrow(expect.objectContaining({ code: 'unknown_call' }));
  });
});

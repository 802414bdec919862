import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createTurns } from '../../src/sessions/turns.ts';

const tooLong = () => new Error('too long');

/** A promise for the test to resolve. */
function promised<T>(): { promise: Promise<T>; resolve(value: T): void } {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((given) => {
    resolve = given;
  });
  return { promise, resolve: (value) => resolve(value) };
}

describe('turns', () => {
  it('are taken in the order in which they were asked for, and go on after one that failed', async () => {
    const order: number[] = [];
    const turns = createTurns(Promise.resolve());
    const all = [1, 2, 3].map((n) =>
      turns.take(async () => {
        order.push(n);
        if (n === 2) throw new Error('failed');
      }),
    );
    expect((await Promise.allSettled(all)).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(order).toEqual([1, 2, 3]);
  });

  it('are given up by those who have waited long enough, whose work is never begun', async () => {
    const before = promised<void>();
    const turns = createTurns(before.promise);
    let isBegun = false;
    const begin = async () => {
      isBegun = true;
    };
    await expect(turns.take(begin, { wait: 0, tooLong })).rejects.toThrow('too long');
    const stop = new AbortController();
    const aborted = turns.take(begin, { wait: 60_000, signal: stop.signal, tooLong });
    stop.abort(new Error('gone'));
    await expect(aborted).rejects.toThrow('gone');
    before.resolve();
    await turns.take(async () => {});
    expect(isBegun).toBe(false);
  });

  it('are kept by those who have begun, however long their work takes', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const answer = promised<string>();
    const begun = promised<void>();
    const work = createTurns(Promise.resolve()).take(
      () => {
        begun.resolve();
        return answer.promise;
      },
      { wait: 10, tooLong },
    );
    await begun.promise;
    vi.advanceTimersByTime(1000);
    answer.resolve('done');
    expect(await work).toBe('done');
  });
});

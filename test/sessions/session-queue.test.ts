import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createSessionQueue } from '../../src/sessions/session-queue.ts';

const tooLong = () => new Error('too long');

/** A promise for the test to resolve. */
function promised<T>(): { promise: Promise<T>; resolve(value: T): void } {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((given) => {
    resolve = given;
  });
  return { promise, resolve: (value) => resolve(value) };
}

describe('the queue of a session', () => {
  it('are taken in the order in which they were asked for, and go on after one that failed', async () => {
    const order: number[] = [];
    const queue = createSessionQueue(Promise.resolve());
    const all = [1, 2, 3].map((n) =>
      queue.enqueue(async () => {
        order.push(n);
        if (n === 2) throw new Error('failed');
      }),
    );
    expect((await Promise.allSettled(all)).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(order).toEqual([1, 2, 3]);
  });

  it('are given up by those who have waited long enough, whose work is never begun', async () => {
    const before = promised<void>();
    const queue = createSessionQueue(before.promise);
    let isBegun = false;
    const begin = async () => {
      isBegun = true;
    };
    await expect(queue.enqueue(begin, { wait: 0, tooLong })).rejects.toThrow('too long');
    const stop = new AbortController();
    const aborted = queue.enqueue(begin, { wait: 60_000, signal: stop.signal, tooLong });
    stop.abort(new Error('gone'));
    await expect(aborted).rejects.toThrow('gone');
    before.resolve();
    await queue.enqueue(async () => {});
    expect(isBegun).toBe(false);
  });

  it('are kept by those who have begun, however long their work takes', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const answer = promised<string>();
    const begun = promised<void>();
    const work = createSessionQueue(Promise.resolve()).enqueue(
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

import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { AT_ONCE, inBatches } from '../../src/files/in-batches.ts';

describe('work on many files', () => {
  it('is done for each of them, in order, and never for more than a few at once', async () => {
    const items = Array.from({ length: 5 * AT_ONCE + 1 }, (_, index) => index);
    const begun: number[] = [];
    let [running, most] = [0, 0];
    await inBatches(items, async (item) => {
      begun.push(item);
      running += 1;
      most = Math.max(most, running);
      await turn();
      running -= 1;
    });
    expect(begun).toEqual(items);
    expect([most, running]).toEqual([AT_ONCE, 0]);
  });

  it('ends with the first failure', async () => {
    const fail = (item: number) => (item === 1 ? Promise.reject(new Error('no')) : Promise.resolve());
    await expect(inBatches([0, 1, 2], fail)).rejects.toThrow('no');
  });
});

import { expect, it } from 'vitest';
import { createHeap, createMemory } from '../../../../src/lab/engines/embedded/heap.ts';
import { createRandom } from '../../../../src/lab/statistics/random.ts';

it('the heap allocates parts that do not overlap, and reuses freed ones', () => {
  const memory = createMemory();
  const heap = createHeap(memory);
  const random = createRandom(1, 'heap');
  const taken = new Map<number, { size: number; mark: number }>();
  for (let step = 0; step < 2000; step++) {
    if (taken.size > 20 || (taken.size > 0 && random.uniform() < 0.4)) {
      const address = random.choose([...taken.keys()]);
      const { size, mark } = taken.get(address) ?? { size: 0, mark: 0 };
      expect(new Set(heap.words(address, size))).toEqual(new Set([mark]));
      heap.free(address);
      taken.delete(address);
      continue;
    }
    const size = 1 + random.integer(5000);
    const address = heap.allocate(size * 4);
    expect(address % 64).toBe(0);
    heap.words(address, size).fill(step);
    taken.set(address, { size, mark: step });
  }
  // Twenty parts of 20 kB at a time, with gaps between.
  expect(memory.buffer.byteLength).toBeLessThan(2 ** 20 * 2);
});

it('the heap says how much is needed when it is more than 4 GiB', () => {
  const heap = createHeap(createMemory());
  expect(() => heap.allocate(5 * 2 ** 30)).toThrow(/4 GiB, and this needs 5121 MiB.*torch engine/);
});

import { describe, expect, it } from 'vitest';
import { ROW_WORDS, SEQUENCE_WORDS, writeSequence } from '../../../../src/lab/engines/embedded/sequence.ts';
import { KERNEL_VARIANTS, kernelInHand, largestError } from './kernel-in-hand.ts';

/** A text whose first tokens are in a shared store, and whose others are rows of a batch. */
interface Text {
  shared: number;
  own: number;
}

interface Case {
  texts: Text[];
  heads: number;
  keyValueHeads: number;
  headWidth: number;
  window: number;
  /** Of the scores; 0 for none. */
  cap: number;
  /** Whether the sequences keep keys and values of their own. */
  keeps: boolean;
}

const TEXTS: Text[] = [
  { shared: 0, own: 1 },
  { shared: 0, own: 9 },
  { shared: 5, own: 1 },
  { shared: 3, own: 6 },
  { shared: 8, own: 3 },
];

const CASES: Case[] = [
  { texts: TEXTS, heads: 2, keyValueHeads: 2, headWidth: 4, window: 0, cap: 0, keeps: false },
  { texts: TEXTS, heads: 6, keyValueHeads: 2, headWidth: 7, window: 0, cap: 0.7, keeps: true },
  { texts: TEXTS, heads: 4, keyValueHeads: 1, headWidth: 64, window: 3, cap: 2, keeps: false },
  { texts: TEXTS, heads: 3, keyValueHeads: 3, headWidth: 38, window: 5, cap: 0, keeps: true },
  { texts: [{ shared: 301, own: 40 }], heads: 2, keyValueHeads: 1, headWidth: 32, window: 0, cap: 0, keeps: true },
];

const NO_NORMS = { query: 0, key: 0, epsilon: 0, takesMean: false, over: 'shared' } as const;

describe.each(KERNEL_VARIANTS)('attention in the %s kernel', (variant) => {
  it.each(CASES)(
    'mixes values by softmax over the keys, for all rows and for listed ones, for $heads heads of $headWidth, a window of $window and a cap of $cap',
    (given) => {
      const { texts, heads, keyValueHeads, headWidth, window, cap, keeps } = given;
      const { heap, numbers, placeRows, readRows, emptyRows, program, place } = kernelInHand(variant);
      const layer = 1;
      const keyValueWidth = keyValueHeads * headWidth;
      const batchWidth = heads * headWidth + 2 * keyValueWidth;
      const rowCount = texts.reduce((sum, { own }) => sum + own, 0);
      const values = numbers(rowCount * batchWidth);
      const batch = placeRows(values, batchWidth);
      const to = emptyRows(rowCount, heads * headWidth);
      const tables = {
        rows: heap.allocate(rowCount * ROW_WORDS * 4),
        sequences: heap.allocate(texts.length * SEQUENCE_WORDS * 4),
      };
      const expected: number[] = [];
      let row = 0;
      for (const [index, { shared, own }] of texts.entries()) {
        const layerNumbers = 2 * shared * keyValueWidth;
        const sharedValues = numbers(2 * layerNumbers);
        const store = { address: place(sharedValues), layerBytes: layerNumbers * 4 };
        const ownBytes = 2 * own * keyValueWidth * 4;
        const ownStore = keeps ? { address: heap.allocate(2 * ownBytes), layerBytes: ownBytes } : undefined;
        const length = shared + own;
        const sequence = {
          tokens: [],
          first: shared,
          length,
          start: 0,
          input: 0,
          own: ownStore,
          neededFrom: shared,
          hooks: new Map(),
        };
        const sharedStore = { ...store, length: shared, lengthBefore: shared, changesAt: 0 };
        writeSequence(heap, tables.sequences + index * SEQUENCE_WORDS * 4, { ...sequence, shared: sharedStore }, row);
        const keys: number[][] = [];
        const mixed: number[][] = [];
        for (let i = 0; i < shared; i++) {
          const at = (half: number) =>
            Array.from({ length: keyValueWidth }, (_, n) => {
              const head = Math.floor(n / headWidth);
              const place = (half * keyValueHeads + head) * shared + i;
              return sharedValues[layer * layerNumbers + place * headWidth + (n % headWidth)] ?? 0;
            });
          keys.push(at(0));
          mixed.push(at(1));
        }
        for (let i = 0; i < own; i++, row++) {
          heap.words(tables.rows + row * ROW_WORDS * 4, ROW_WORDS).set([index, shared + i]);
          const at = row * batchWidth;
          const query = Array.from(values.slice(at, at + heads * headWidth));
          keys.push(Array.from(values.slice(at + heads * headWidth, at + heads * headWidth + keyValueWidth)));
          mixed.push(Array.from(values.slice(at + heads * headWidth + keyValueWidth, at + batchWidth)));
          expected.push(...attention(query, keys, mixed, given));
        }
      }
      const shape = { heads, keyValueHeads, headWidth };
      const noTurns = { half: 0, address: 0, stride: 0 };
      program.prepareHeads(batch, rowCount, shape, noTurns, NO_NORMS, tables, layer);
      program.attend(batch, rowCount, shape, { window, cap }, to, tables, layer);
      program.run();
      const all = readRows(to, rowCount, heads * headWidth);
      expect(largestError(all, expected)).toBeLessThan(1e-6);

      const chosen = Array.from({ length: rowCount }, (_, row) => row).filter((row) => row % 3 !== 1);
      const listed = heap.allocate(chosen.length * 4);
      heap.words(listed, chosen.length).set(chosen);
      const some = emptyRows(chosen.length, heads * headWidth);
      program.attend(batch, chosen.length, shape, { window, cap }, some, tables, layer, { listed });
      program.run();
      const rowOf = (row: number) => all.slice(row * heads * headWidth, (row + 1) * heads * headWidth);
      const wanted = chosen.flatMap((row) => Array.from(rowOf(row)));
      expect(Array.from(readRows(some, chosen.length, heads * headWidth))).toEqual(wanted);
    },
  );

  it.each(
    (['shared', 'each', 'whole'] as const).flatMap((over) => [false, true].map((takesMean) => ({ over, takesMean }))),
  )('applies the rotary embedding to queries and keys, after their norm ($over weights)', ({ over, takesMean }) => {
    const { heap, numbers, placeRows, readRows, place, program } = kernelInHand(variant);
    const [heads, keyValueHeads, headWidth, half] = [3, 2, 10, 3];
    const width = (heads + 2 * keyValueHeads) * headWidth;
    const x = numbers(2 * width);
    const turns = numbers(8 * 2 * half);
    const norms = [numbers(heads * headWidth), numbers(keyValueHeads * headWidth)];
    const longTurns = numbers(8 * 2 * half);
    const tables = { rows: heap.allocate(2 * ROW_WORDS * 4), sequences: heap.allocate(2 * SEQUENCE_WORDS * 4) };
    // The second row's text is long.
    heap.words(tables.rows, 4).set([0, 7, 1, 2]);
    heap.words(tables.sequences, 2 * SEQUENCE_WORDS).fill(0);
    heap.words(tables.sequences + 4 * (SEQUENCE_WORDS - 1), 1).set([8]);
    heap.words(tables.sequences + 4 * (2 * SEQUENCE_WORDS - 1), 1).set([9]);
    const batch = placeRows(x, width);
    const [query, key] = [place(norms[0] ?? numbers(0)), place(norms[1] ?? numbers(0))];
    const addresses = { query, key, epsilon: 1e-3, takesMean, over };
    const both = place(Float32Array.from([...turns, ...longTurns]));
    const table = { half, address: both, stride: 2 * half * 4, long: { beyond: 8, away: turns.length * 4 } };
    program.prepareHeads(batch, 2, { heads, keyValueHeads, headWidth }, table, addresses, tables, 0);
    program.run();
    const expected = [7, 2].flatMap((position, row) =>
      Array.from({ length: heads + 2 * keyValueHeads }, (_, head) => {
        const start = row * width + head * headWidth;
        const values = Array.from(x.slice(start, start + headWidth));
        if (head >= heads + keyValueHeads) return values;
        const isQuery = head < heads;
        const number = isQuery ? head : head - heads;
        const first = row * width + (isQuery ? 0 : heads * headWidth);
        const all = Array.from(x.slice(first, first + (isQuery ? heads : keyValueHeads) * headWidth));
        const { mean, root } = momentsOf(over === 'whole' ? all : values, takesMean);
        const norm = norms[isQuery ? 0 : 1];
        const weights = over === 'shared' ? 0 : number * headWidth;
        const normed = values.map((value, i) => ((value - mean) / root) * (norm?.[weights + i] ?? 0));
        const turning = row === 1 ? longTurns : turns;
        return normed.map((value, i) => {
          if (i >= 2 * half) return value;
          const cosine = turning[position * 2 * half + (i % half)] ?? 0;
          const sine = turning[position * 2 * half + half + (i % half)] ?? 0;
          const other = i < half ? -(normed[i + half] ?? 0) : (normed[i - half] ?? 0);
          return value * cosine + other * sine;
        });
      }).flat(),
    );
    expect(largestError(readRows(batch, 2, width), expected)).toBeLessThan(2e-6);
  });
});

/** What a norm takes off, and divides by. */
function momentsOf(values: readonly number[], takesMean: boolean): { mean: number; root: number } {
  const mean = takesMean ? values.reduce((sum, value) => sum + value, 0) / values.length : 0;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return { mean, root: Math.sqrt(squares / values.length + 1e-3) };
}

/** In double precision, for the last position. */
function attention(
  query: readonly number[],
  keys: readonly number[][],
  values: readonly number[][],
  { heads, keyValueHeads, headWidth, window, cap }: Case,
): number[] {
  const first = window ? Math.max(0, keys.length - window) : 0;
  return Array.from({ length: heads }, (_, head) => {
    const start = Math.floor(head / (heads / keyValueHeads)) * headWidth;
    const scores = keys.slice(first).map((key) => {
      let sum = 0;
      for (let i = 0; i < headWidth; i++) sum += (query[head * headWidth + i] ?? 0) * (key[start + i] ?? 0);
      const score = sum / Math.sqrt(headWidth);
      return cap ? cap * Math.tanh(score / cap) : score;
    });
    const weights = scores.map((score) => Math.exp(score - Math.max(...scores)));
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    return Array.from({ length: headWidth }, (_, i) =>
      weights.reduce((sum, weight, at) => sum + (weight / total) * (values[first + at]?.[start + i] ?? 0), 0),
    );
  }).flat();
}

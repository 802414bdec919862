import { describe, expect, it } from 'vitest';
import { KERNEL_VARIANTS, kernelInHand, largestError } from './kernel-in-hand.ts';

const CLOSE = 2e-6;

describe.each(KERNEL_VARIANTS)('the %s kernel', (variant) => {
  it('multiplies rows with a matrix, whatever their sizes', () => {
    for (const rows of [1, 2, 3, 4, 5, 6, 7, 11, 13, 200]) {
      for (const [inputs, outputs] of [
        [1, 1],
        [3, 7],
        [8, 8],
        [17, 33],
        [64, 41],
        [1030, 9],
        [2051, 70],
      ] as const) {
        const { numbers, placeRows, readRows, emptyRows, pack, program } = kernelInHand(variant);
        const a = numbers(rows * inputs);
        const weights = numbers(outputs * inputs);
        const bias = rows % 2 ? numbers(outputs) : undefined;
        const to = emptyRows(rows, outputs);
        program.multiply(placeRows(a, inputs), rows, pack(weights, outputs, inputs, bias), to);
        program.run();
        const expected = new Float64Array(rows * outputs);
        for (let row = 0; row < rows; row++) {
          for (let output = 0; output < outputs; output++) {
            let sum = bias?.[output] ?? 0;
            for (let i = 0; i < inputs; i++) sum += (a[row * inputs + i] ?? 0) * (weights[output * inputs + i] ?? 0);
            expected[row * outputs + output] = sum;
          }
        }
        expect(largestError(readRows(to, rows, outputs), expected), `${rows} × ${inputs} × ${outputs}`).toBeLessThan(
          CLOSE,
        );
      }
    }
  });

  it('gives a row the same bits, however many rows are with it', () => {
    const { numbers, placeRows, readRows, emptyRows, pack, program } = kernelInHand(variant);
    const [rows, inputs, outputs] = [23, 1500, 77];
    const a = placeRows(numbers(rows * inputs), inputs);
    const matrix = pack(numbers(outputs * inputs), outputs, inputs);
    const together = emptyRows(rows, outputs);
    program.multiply(a, rows, matrix, together);
    program.run();
    for (const [first, count] of [
      [0, 1],
      [5, 2],
      [7, 3],
      [9, 5],
      [22, 1],
    ] as const) {
      const alone = emptyRows(count, outputs);
      program.multiply({ ...a, address: a.address + first * a.stride }, count, matrix, alone);
      program.run();
      const expected = readRows({ ...together, address: together.address + first * together.stride }, count, outputs);
      expect(readRows(alone, count, outputs)).toEqual(expected);
    }
  });

  it('computes beyond the first two gigabytes of memory', () => {
    const { heap, numbers, placeRows, readRows, emptyRows, pack, program } = kernelInHand(variant);
    const compute = () => {
      const to = emptyRows(9, 20);
      program.multiply(placeRows(a, 30), 9, pack(weights, 20, 30), to);
      program.run();
      return readRows(to, 9, 20);
    };
    const [a, weights] = [numbers(9 * 30), numbers(20 * 30)];
    const below = compute();
    // Nothing is written to it, and so it is not really taken.
    expect(heap.allocate(3 * 2 ** 30)).toBeLessThan(2 ** 31);
    expect(compute()).toEqual(below);
    expect(heap.allocate(64)).toBeGreaterThan(2 ** 31);
  });

  it('normalizes rows by mean and variance, and by their mean square', () => {
    for (const width of [1, 3, 4, 5, 48, 103]) {
      const { numbers, place, placeRows, readRows, emptyRows, program } = kernelInHand(variant);
      const x = numbers(9 * width).map((value) => value * 3 + 5);
      const [weight, bias] = [numbers(width), numbers(width)];
      const [layer, rms] = [emptyRows(9, width), emptyRows(9, width)];
      const settings = { width, epsilon: 1e-3 };
      const from = placeRows(x, width);
      const norm = { weight: place(weight), bias: place(bias) };
      program.normalize(from, 9, norm, { ...settings, takesMean: true }, layer);
      program.normalize(from, 9, norm, { ...settings, takesMean: false }, rms);
      program.run();
      const expectedLayer = x.map((value, i) => {
        const row = Array.from(x.subarray(i - (i % width), i - (i % width) + width));
        const mean = row.reduce((sum, one) => sum + one, 0) / width;
        const variance = row.reduce((sum, one) => sum + (one - mean) ** 2, 0) / width;
        return ((value - mean) / Math.sqrt(variance + 1e-3)) * (weight[i % width] ?? 0) + (bias[i % width] ?? 0);
      });
      const expectedRms = x.map((value, i) => {
        const row = Array.from(x.subarray(i - (i % width), i - (i % width) + width));
        const square = row.reduce((sum, one) => sum + one ** 2, 0) / width;
        return (value / Math.sqrt(square + 1e-3)) * (weight[i % width] ?? 0);
      });
      expect(largestError(readRows(layer, 9, width), expectedLayer), `layer ${width}`).toBeLessThan(CLOSE);
      expect(largestError(readRows(rms, 9, width), expectedRms), `rms ${width}`).toBeLessThan(CLOSE);
    }
  });

  it('normalizes rows from a table of addresses', () => {
    const { heap, numbers, place, placeRows, readRows, emptyRows, program } = kernelInHand(variant);
    const from = placeRows(numbers(5 * 12), 12);
    const norm = { weight: place(numbers(12)), bias: 0 };
    const settings = { width: 12, epsilon: 1e-5, takesMean: false };
    const [all, some] = [emptyRows(5, 12), emptyRows(2, 12)];
    const addresses = heap.allocate(8);
    heap.words(addresses, 2).set([from.address + 3 * from.stride, from.address + from.stride]);
    program.normalize(from, 5, norm, settings, all);
    program.normalize({ addresses }, 2, norm, settings, some);
    program.run();
    const expected = readRows(all, 5, 12);
    expect(readRows(some, 2, 12)).toEqual(Float32Array.of(...expected.slice(36, 48), ...expected.slice(12, 24)));
  });

  it('computes activation functions as exactly as single precision allows', () => {
    const { placeRows, readRows, program } = kernelInHand(variant);
    const x = Float32Array.from({ length: 4001 }, (_, i) => (i - 2000) / 100);
    const functions = [
      (value: number) => value * normalProbability(value),
      (value: number) => (value / 2) * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (value + 0.044715 * value ** 3))),
      (value: number) => value / (1 + Math.exp(-value)),
      (value: number) => Math.max(0, value),
    ];
    functions.forEach((expected, kind) => {
      const rows = placeRows(x, x.length);
      program.activate(rows, 1, x.length, kind, false);
      program.run();
      const actual = readRows(rows, 1, x.length);
      for (const [i, value] of x.entries()) {
        const right = expected(value);
        const error = Math.abs((actual[i] ?? Number.NaN) - right);
        expect(error, `function ${kind} of ${value}`).toBeLessThanOrEqual(4e-7 * Math.max(Math.abs(right), 0.1));
      }
    });
  });

  it('multiplies the gate with what follows it', () => {
    for (const width of [1, 6, 8, 21]) {
      const { numbers, placeRows, readRows, program } = kernelInHand(variant);
      const x = numbers(5 * 2 * width);
      const rows = placeRows(x, 2 * width);
      program.activate(rows, 5, width, 2, true);
      program.run();
      const expected = Float64Array.from({ length: 5 * width }, (_, i) => {
        const at = Math.floor(i / width) * 2 * width + (i % width);
        const gate = x[at] ?? 0;
        return (gate / (1 + Math.exp(-gate))) * (x[at + width] ?? 0);
      });
      expect(largestError(readRows(rows, 5, width), expected)).toBeLessThan(CLOSE);
    }
  });

  it('caps values softly, near 0 as precisely as far from it', () => {
    const { placeRows, readRows, program } = kernelInHand(variant);
    const x = Float32Array.from({ length: 4 * 51 }, (_, i) => (i - 100) * (i % 2 ? 0.01 : 1e-4) * i);
    for (const cap of [0.5, 30]) {
      const rows = placeRows(x, 51);
      program.cap(rows, 4, 51, cap);
      program.run();
      const relative = readRows(rows, 4, 51).map((value, i) => {
        const expected = cap * Math.tanh((x[i] ?? 0) / cap);
        return expected === 0 ? value : value / expected - 1;
      });
      expect(Math.max(...relative.map(Math.abs))).toBeLessThan(5e-7);
    }
  });

  it('looks tokens up, scales their embeddings, and adds learned positions', () => {
    const { heap, numbers, placeRows, readRows, emptyRows, pack, program } = kernelInHand(variant);
    const [width, vocabulary] = [13, 19];
    const embedding = numbers(vocabulary * width);
    const positions = numbers(5 * width);
    const tokens = heap.allocate(3 * 8);
    heap.words(tokens, 6).set([18, 4, 0, 0, 9, 2]);
    const to = emptyRows(3, width);
    program.embed(to, 3, pack(embedding, vocabulary, width), placeRows(positions, width), { tokens, scale: 3 });
    program.run();
    const row = (token: number, position: number) =>
      Array.from({ length: width }, (_, i) =>
        Math.fround(Math.fround(3 * (embedding[token * width + i] ?? 0)) + (positions[position * width + i] ?? 0)),
      );
    expect(Array.from(readRows(to, 3, width))).toEqual([...row(18, 4), ...row(0, 0), ...row(9, 2)]);
  });

  it('adds rows', () => {
    const { numbers, placeRows, readRows, program } = kernelInHand(variant);
    const [x, y] = [numbers(7 * 11), numbers(7 * 11)];
    const to = placeRows(x, 11);
    program.add(to, placeRows(y, 11), 7, 11);
    program.run();
    expect(readRows(to, 7, 11)).toEqual(x.map((value, i) => value + (y[i] ?? 0)));
  });

  it('measures logits, and how far apart two predictions are', () => {
    for (const vocabulary of [1, 2, 3, 4, 5, 6, 7, 131]) {
      const { heap, numbers, placeRows, program } = kernelInHand(variant);
      const logits = numbers(6 * vocabulary).map((value) => 5 * value + 30);
      const base = numbers(2 * vocabulary).map((value) => 5 * value - 40);
      const [logs, baseLogs, table, to] = [48, 16, 24, 48].map((bytes) => heap.allocate(bytes));
      if (!logs || !baseLogs || !table || !to) throw new Error('There is no memory.');
      heap.words(table, 6).set([1, 0, 1, 1, 0, 0]);
      const measured = { ...placeRows(logits, vocabulary), logarithms: logs };
      const measuredBase = { ...placeRows(base, vocabulary), logarithms: baseLogs };
      program.measureLogits(measured, 6, vocabulary, logs);
      program.measureLogits(measuredBase, 2, vocabulary, baseLogs);
      program.compareLogits(measured, 6, vocabulary, { ...measuredBase, rows: table }, to);
      program.run();
      const rowOf = (values: Float32Array, row: number) =>
        Array.from(values.slice(row * vocabulary, (row + 1) * vocabulary));
      const expected = [1, 0, 1, 1, 0, 0].map((baseRow, row) => {
        const p = logSoftmax(rowOf(base, baseRow));
        const q = logSoftmax(rowOf(logits, row));
        return p.reduce((sum, log, i) => sum + Math.exp(log) * (log - (q[i] ?? 0)), 0);
      });
      expect(largestError(heap.doubles(to, 6), expected), `of ${vocabulary}`).toBeLessThan(CLOSE);
      const sums = Array.from({ length: 6 }, (_, row) => rowOf(logits, row)).map(
        (row) => (row[0] ?? 0) - (logSoftmax(row)[0] ?? 0),
      );
      expect(largestError(heap.doubles(logs, 6), sums)).toBeLessThan(CLOSE);
    }
  });
});

function logSoftmax(logits: readonly number[]): number[] {
  const highest = Math.max(...logits);
  const log = highest + Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit - highest), 0));
  return logits.map((logit) => logit - log);
}

/** By Simpson's rule; beyond 8 the tail is that of an asymptotic series. */
function normalProbability(x: number): number {
  const density = (value: number) => Math.exp((-value * value) / 2) / Math.sqrt(2 * Math.PI);
  const size = Math.abs(x);
  if (size > 6) {
    const inverse = 1 / (size * size);
    const tail = (density(size) / size) * (1 - inverse + 3 * inverse ** 2 - 15 * inverse ** 3 + 105 * inverse ** 4);
    return x > 0 ? 1 - tail : tail;
  }
  // From the far end of the tail, so that small probabilities keep their digits.
  const steps = 2000;
  const step = (12 - size) / steps;
  let tail = density(size) + density(12);
  for (let i = 1; i < steps; i++) tail += (i % 2 ? 4 : 2) * density(size + i * step);
  tail *= step / 3;
  return x > 0 ? 1 - tail : tail;
}

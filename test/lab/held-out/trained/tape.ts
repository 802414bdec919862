/** Records computations on vectors, and computes the gradients of their parameters. Knows only what a small transformer needs. */

import { missing } from '../../../../src/lab/core/missing.ts';
import { addScaled, dot } from '../../../../src/lab/statistics/vectors.ts';

/** Row-major, with what Adam keeps. */
export interface Parameter {
  rows: number;
  columns: number;
  values: Float64Array;
  gradient: Float64Array;
  mean: Float64Array;
  square: Float64Array;
}

export interface Vector {
  value: Float64Array;
  gradient: Float64Array;
}

export interface Tape {
  row(parameter: Parameter, index: number): Vector;
  add(a: Vector, b: Vector): Vector;
  /** A layer norm without weight and bias. */
  norm(x: Vector): Vector;
  linear(parameter: Parameter, x: Vector): Vector;
  gelu(x: Vector): Vector;
  attend(query: Vector, keys: readonly Vector[], values: readonly Vector[]): Vector;
  /** The surprise at a token; gradients are added to those of the parameters. */
  learn(logits: Vector, token: number): number;
  /** The mean surprise at tokens that have these chances; gradients likewise. */
  learnChances(logits: Vector, wanted: ReadonlyMap<number, number>): number;
}

export function createTape(): Tape {
  const steps: (() => void)[] = [];
  const result = (value: Float64Array, backward: (gradient: Float64Array) => void): Vector => {
    const vector = { value, gradient: new Float64Array(value.length) };
    steps.push(() => backward(vector.gradient));
    return vector;
  };

  const learnChances: Tape['learnChances'] = (logits, wanted) => {
    const chances = softmax(logits.value);
    addScaled(logits.gradient, chances, 0, 1);
    let surprise = 0;
    for (const [token, chance] of wanted) {
      logits.gradient[token] = (logits.gradient[token] ?? missing('logit', token)) - chance;
      surprise -= chance * Math.log(chances[token] ?? missing('chance', token));
    }
    for (const step of steps.reverse()) step();
    return surprise;
  };

  return {
    row({ columns, values, gradient }, index) {
      const from = index * columns;
      return result(values.slice(from, from + columns), (up) =>
        addScaled(gradient.subarray(from, from + columns), up, 0, 1),
      );
    },

    add: (a, b) =>
      result(sumOf(a.value, b.value), (up) => {
        addScaled(a.gradient, up, 0, 1);
        addScaled(b.gradient, up, 0, 1);
      }),

    norm(x) {
      const width = x.value.length;
      const mean = total(x.value) / width;
      const centred = x.value.map((value) => value - mean);
      const scale = 1 / Math.sqrt(dot(centred, centred) / width + 1e-5);
      const normed = centred.map((value) => value * scale);
      return result(normed, (up) => {
        const along = dot(up, normed) / width;
        const level = total(up) / width;
        addScaled(
          x.gradient,
          up.map((value) => value - level),
          0,
          scale,
        );
        addScaled(x.gradient, normed, 0, -along * scale);
      });
    },

    linear({ rows, columns, values, gradient }, x) {
      const products = new Float64Array(rows);
      for (let row = 0; row < rows; row++) products[row] = dot(values, x.value, row * columns);
      return result(products, (up) => {
        for (let row = 0; row < rows; row++) {
          const share = up[row] ?? missing('number', row);
          addScaled(x.gradient, values, row * columns, share);
          // In place: a view for every row takes longer than the sums.
          for (let column = 0; column < columns; column++) {
            const at = row * columns + column;
            gradient[at] =
              (gradient[at] ?? missing('slope', at)) + share * (x.value[column] ?? missing('number', column));
          }
        }
      });
    },

    gelu: (x) =>
      result(
        x.value.map((value) => gelu(value)),
        (up) =>
          addScaled(
            x.gradient,
            up.map((share, i) => share * geluSlope(x.value[i] ?? missing('number', i))),
            0,
            1,
          ),
      ),

    attend(query, keys, values) {
      const scale = 1 / Math.sqrt(query.value.length);
      const weights = softmax(Float64Array.from(keys, (key) => dot(key.value, query.value) * scale));
      const mixed = new Float64Array(query.value.length);
      values.forEach(({ value }, i) => {
        addScaled(mixed, value, 0, weights[i] ?? missing('weight', i));
      });
      return result(mixed, (up) => {
        const average = dot(mixed, up);
        keys.forEach((key, i) => {
          const weight = weights[i] ?? missing('weight', i);
          const value = values[i] ?? missing('value', i);
          const score = weight * (dot(value.value, up) - average) * scale;
          addScaled(value.gradient, up, 0, weight);
          addScaled(key.gradient, query.value, 0, score);
          addScaled(query.gradient, key.value, 0, score);
        });
      });
    },

    learn: (logits, token) => learnChances(logits, new Map([[token, 1]])),
    learnChances,
  };
}

/** One step of Adam; gradients begin anew. */
export function descend(parameters: Iterable<Parameter>, step: number, rate: number): void {
  const [slow, fast] = [1 - 0.999 ** step, 1 - 0.9 ** step];
  for (const { values, gradient, mean, square } of parameters) {
    for (let i = 0; i < gradient.length; i++) {
      const slope = gradient[i] ?? missing('slope', i);
      const first = 0.9 * (mean[i] ?? 0) + 0.1 * slope;
      const second = 0.999 * (square[i] ?? 0) + 0.001 * slope * slope;
      mean[i] = first;
      square[i] = second;
      values[i] = (values[i] ?? 0) - (rate * first) / fast / (Math.sqrt(second / slow) + 1e-8);
    }
    gradient.fill(0);
  }
}

function sumOf(a: Float64Array, b: Float64Array): Float64Array {
  const sum = a.slice();
  addScaled(sum, b, 0, 1);
  return sum;
}

function total(values: Float64Array): number {
  return values.reduce((sum, value) => sum + value, 0);
}

function softmax(scores: Float64Array): Float64Array {
  const largest = Math.max(...scores);
  const powers = scores.map((score) => Math.exp(score - largest));
  const sum = total(powers);
  return powers.map((power) => power / sum);
}

const ROOT = Math.sqrt(2 / Math.PI);

/** By way of tanh, as GPT-2 computes it. */
function gelu(x: number): number {
  return 0.5 * x * (1 + Math.tanh(ROOT * (x + 0.044715 * x ** 3)));
}

function geluSlope(x: number): number {
  const tanh = Math.tanh(ROOT * (x + 0.044715 * x ** 3));
  return 0.5 * (1 + tanh) + 0.5 * x * (1 - tanh ** 2) * ROOT * (1 + 3 * 0.044715 * x ** 2);
}

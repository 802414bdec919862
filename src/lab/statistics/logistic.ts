/**
 * Logistic regression with a squared penalty, as scikit-learn states it: ½‖w‖² + c · Σ log-loss, the bias unpenalised. Found by
 * Newton's method; its steps are solved by conjugate gradients, so that wide activations need no square matrix.
 */

import { missing } from '../core/missing.ts';
import { addScaled, centreRows, dot } from './vectors.ts';

export interface LogisticFit {
  weights: Float64Array;
  bias: number;
  iterations: number;
  converged: boolean;
}

/** Rows are `labels.length` × width. */
export function fitLogistic(
  rows: Float32Array | Float64Array,
  labels: ArrayLike<number>,
  options: { c?: number; maxIterations?: number; tolerance?: number } = {},
): LogisticFit {
  const { c = 1, maxIterations = 100, tolerance = 1e-8 } = options;
  const problem = createProblem(rows, labels, c);
  const size = problem.width + 1;
  let point = new Float64Array(size);
  let state = problem.at(point);
  const enough = tolerance * Math.max(1, largest(state.gradient));
  let iterations = 0;
  for (; iterations < maxIterations && largest(state.gradient) > enough; iterations++) {
    const step = newtonStep(problem, state, size);
    const descent = dot(step, state.gradient);
    let next = point;
    let nextState = state;
    // Halves the step until the loss goes down as far as the slope promises.
    for (let length = 1; length > 1e-10; length /= 2) {
      next = Float64Array.from(point, (value, i) => value + length * (step[i] ?? missing('step of weight', i)));
      nextState = problem.at(next);
      if (nextState.loss <= state.loss + 1e-4 * length * descent) break;
    }
    if (nextState.loss >= state.loss) break;
    point = next;
    state = nextState;
  }
  const weights = point.slice(0, -1);
  const bias = (point[size - 1] ?? missing('bias')) - dot(problem.centre, weights);
  return { weights, bias, iterations, converged: largest(state.gradient) <= enough };
}

interface State {
  loss: number;
  gradient: Float64Array;
  /** c · p (1 − p) of every row. */
  curvature: Float64Array;
}

interface Problem {
  width: number;
  /** Rows are taken from their mean, which only moves the bias, and makes the problem far rounder. */
  centre: Float64Array;
  at(point: Float64Array): State;
  timesHessian(vector: Float64Array, state: State): Float64Array;
}

function createProblem(rows: Float32Array | Float64Array, labels: ArrayLike<number>, c: number): Problem {
  const count = labels.length;
  const width = rows.length / count;
  const { centre, centred } = centreRows(rows, width);
  const weightsOf = (vector: Float64Array) => vector.subarray(0, width);

  return {
    width,
    centre,
    at(point) {
      const weights = weightsOf(point);
      const bias = point[width] ?? missing('bias');
      const gradient = new Float64Array(width + 1);
      gradient.set(weights);
      const curvature = new Float64Array(count);
      let loss = dot(weights, weights) / 2;
      let biasGradient = 0;
      for (let row = 0; row < count; row++) {
        const value = dot(centred, weights, row * width) + bias;
        const probability = sigmoid(value);
        const label = labels[row] === 1 ? 1 : 0;
        const signed = label === 1 ? value : -value;
        loss += c * (Math.log1p(Math.exp(-Math.abs(signed))) + Math.max(0, -signed));
        const error = c * (probability - label);
        addScaled(weightsOf(gradient), centred, row * width, error);
        biasGradient += error;
        curvature[row] = c * probability * (1 - probability);
      }
      gradient[width] = biasGradient;
      return { loss, gradient, curvature };
    },
    timesHessian(vector, { curvature }) {
      const weights = weightsOf(vector);
      const bias = vector[width] ?? missing('bias');
      const result = new Float64Array(width + 1);
      result.set(weights);
      let biasProduct = 0;
      for (let row = 0; row < count; row++) {
        const value =
          (curvature[row] ?? missing('curvature of row', row)) * (dot(centred, weights, row * width) + bias);
        addScaled(weightsOf(result), centred, row * width, value);
        biasProduct += value;
      }
      result[width] = biasProduct;
      return result;
    },
  };
}

function newtonStep(problem: Problem, state: State, size: number): Float64Array {
  const step = new Float64Array(size);
  const residual = Float64Array.from(state.gradient, (value) => -value);
  let direction = Float64Array.from(residual);
  let square = dot(residual, residual);
  const enough = square * Math.min(1e-4, square);
  for (let iteration = 0; iteration < 2 * size && square > enough; iteration++) {
    const product = problem.timesHessian(direction, state);
    const curvature = dot(direction, product);
    if (curvature <= 0) break;
    const length = square / curvature;
    addScaled(step, direction, 0, length);
    addScaled(residual, product, 0, -length);
    const next = dot(residual, residual);
    direction = Float64Array.from(
      direction,
      (value, i) => (residual[i] ?? missing('residual', i)) + (next / square) * value,
    );
    square = next;
  }
  return step;
}

export function sigmoid(value: number): number {
  return value >= 0 ? 1 / (1 + Math.exp(-value)) : 1 - 1 / (1 + Math.exp(value));
}

function largest(values: Float64Array): number {
  let result = 0;
  for (const value of values) result = Math.max(result, Math.abs(value));
  return result;
}

/** Computes a model from its files in plain loops and double precision: slow, and simple enough to be trusted. */

import type { ModelFiles } from '../../../src/lab/models/open-model.ts';

/** What each block adds and makes, and the logits, at all positions; each one row by row. */
export interface PlainRun {
  /** For each layer and position: for each head its weights for all tokens. */
  patterns: number[][][][];
  /** For each layer and position: the outputs of all heads, side by side. */
  z: number[][][];
  attention: number[][][];
  mlp: number[][][];
  residuals: number[][][];
  logits: number[][];
}

export function plainForward(model: ModelFiles, tokens: readonly number[]): PlainRun {
  const { spec } = model;
  const run: PlainRun = { patterns: [], z: [], attention: [], mlp: [], residuals: [], logits: [] };
  const embedding = rows('embedding');
  const learned = spec.positions.kind === 'learned' ? rows('positions') : undefined;
  let stream = tokens.map((token, position) =>
    add(scaled(at(embedding, token), spec.embeddingScale), learned && at(learned, position)),
  );

  for (let layer = 0; layer < spec.layers; layer++) {
    const name = `layers.${layer}`;
    const read = stream.map((row) => normIfAny(`${name}.attention.norm`, row));
    const attended = attention(name, read, spec.window[layer]).map((row) =>
      normIfAny(`${name}.attention.afterNorm`, row),
    );
    const between = stream.map((row, position) => add(row, at(attended, position)));
    const mlpNorm = spec.parallel && !has(`${name}.mlp.norm.weight`) ? `${name}.attention.norm` : `${name}.mlp.norm`;
    const added = (spec.parallel ? stream : between).map((row) =>
      normIfAny(`${name}.mlp.afterNorm`, mlp(name, normIfAny(mlpNorm, row))),
    );
    stream = between.map((row, position) => add(row, at(added, position)));
    run.attention.push(attended);
    run.mlp.push(added);
    run.residuals.push(stream);
  }
  const unembedding = model.tensors.has('unembedding.weight') ? rows('unembedding.weight') : embedding;
  run.logits = stream.map((row) => {
    const last = norm('final.norm', row);
    return unembedding.map((direction) => capped(dot(direction, last), spec.logitCap));
  });
  return run;

  function attention(name: string, read: number[][], window: number | undefined): number[][] {
    const rotary = window === undefined ? spec.positions : (spec.windowPositions ?? spec.positions);
    const within = window ?? Number.POSITIVE_INFINITY;
    const turn = (what: string) => (row: number[], position: number) =>
      turned(`${name}.attention.${what}Norm`, project(what, row), position, rotary);
    const queries = read.map(turn('query'));
    const keys = read.map(turn('key'));
    const values = read.map((row) => project('value', row));
    const shared = spec.heads / spec.keyValueHeads;
    const patterns: number[][][] = read.map(() => []);
    const z = read.map((_, position) => {
      const mixed = Array.from({ length: spec.heads }, (_, number) => {
        const query = head(at(queries, position), number);
        const seen = keys.map((_, past) => past).filter((past) => past <= position && past > position - within);
        const scores = seen.map((past) => dot(query, head(at(keys, past), Math.floor(number / shared))));
        const weights = softmax(scores.map((score) => capped(score / Math.sqrt(spec.headWidth), spec.attentionCap)));
        patterns[position]?.push(keys.map((_, past) => weights[seen.indexOf(past)] ?? 0));
        return seen
          .map((past, i) => scaled(head(at(values, past), Math.floor(number / shared)), weights[i] ?? 0))
          .reduce((sum, row) => add(sum, row));
      });
      return mixed.flat();
    });
    run.patterns.push(patterns);
    run.z.push(z);
    return z.map((row) => linear(`${name}.attention.output`, row));

    function project(what: string, row: number[]): number[] {
      return linear(`${name}.attention.${what}`, row);
    }
  }

  function mlp(name: string, read: number[]): number[] {
    const up = linear(`${name}.mlp.up`, read);
    if (!spec.gated) return linear(`${name}.mlp.down`, up.map(activation));
    const gate = linear(`${name}.mlp.gate`, read).map(activation);
    return linear(
      `${name}.mlp.down`,
      up.map((value, i) => value * (gate[i] ?? 0)),
    );
  }

  /** All heads of a query or key: normalised, if the model does that, and turned by their position. */
  function turned(normName: string, row: number[], position: number, positions: typeof spec.positions): number[] {
    const whole = spec.queryKeyNorm === 'whole' ? norm(normName, row) : row;
    const heads = Array.from({ length: row.length / spec.headWidth }, (_, number) => {
      const plain = head(whole, number);
      if (spec.queryKeyNorm === 'shared') return norm(normName, plain);
      return spec.queryKeyNorm === 'each' ? norm(`${normName}.${number}`, plain) : plain;
    });
    if (positions.kind === 'learned') return heads.flat();
    const { long } = positions;
    const frequencies = long && tokens.length > long.beyond ? long.inverseFrequencies : positions.inverseFrequencies;
    const half = frequencies.length;
    return heads.flatMap((values) =>
      values.map((value, i) => {
        if (i >= 2 * half) return value;
        const angle = Math.fround(position * (frequencies[i % half] ?? 0));
        const other = i < half ? -(values[i + half] ?? 0) : (values[i - half] ?? 0);
        return (value * Math.cos(angle) + other * Math.sin(angle)) * positions.scale;
      }),
    );
  }

  function has(name: string): boolean {
    return model.tensors.has(name);
  }

  function normIfAny(name: string, row: number[]): number[] {
    return has(`${name}.weight`) ? norm(name, row) : row;
  }

  function norm(name: string, row: number[]): number[] {
    const weight = numbers(`${name}.weight`);
    const mean = spec.norm === 'layer' ? row.reduce((sum, value) => sum + value, 0) / row.length : 0;
    const centred = row.map((value) => value - mean);
    const deviation = Math.sqrt(dot(centred, centred) / row.length + spec.normEpsilon);
    const normal = centred.map((value, i) => (value / deviation) * (weight[i] ?? 0));
    return model.tensors.has(`${name}.bias`) ? add(normal, numbers(`${name}.bias`)) : normal;
  }

  function linear(name: string, row: number[]): number[] {
    const product = rows(`${name}.weight`).map((weights) => dot(weights, row));
    return model.tensors.has(`${name}.bias`) ? add(product, numbers(`${name}.bias`)) : product;
  }

  function activation(x: number): number {
    if (spec.activation === 'relu') return Math.max(x, 0);
    if (spec.activation === 'silu') return x / (1 + Math.exp(-x));
    if (spec.activation === 'gelu-tanh')
      return 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));
    return 0.5 * x * (1 + errorFunction(x / Math.SQRT2));
  }

  function head(row: number[], number: number): number[] {
    return row.slice(number * spec.headWidth, (number + 1) * spec.headWidth);
  }

  function rows(name: string): number[][] {
    const columns = model.tensors.get(name)?.shape[1] ?? 1;
    const all = numbers(name);
    return Array.from({ length: all.length / columns }, (_, i) => all.slice(i * columns, (i + 1) * columns));
  }

  function numbers(name: string): number[] {
    const tensor = model.tensors.get(name);
    if (!tensor) throw new Error(`There is no tensor ${name}.`);
    const values = new Float32Array(tensor.shape.reduce((product, size) => product * size, 1));
    tensor.read(values);
    return [...values];
  }
}

function at(list: number[][], index: number): number[] {
  const row = list[index];
  if (!row) throw new Error(`There is no row ${index}.`);
  return row;
}

function add(a: number[], b: number[] | undefined): number[] {
  return b ? a.map((value, i) => value + (b[i] ?? 0)) : a;
}

function capped(value: number, cap: number | undefined): number {
  return cap === undefined ? value : cap * Math.tanh(value / cap);
}

function scaled(row: number[], by: number): number[] {
  return row.map((value) => value * by);
}

function dot(a: number[], b: number[]): number {
  return a.reduce((sum, value, i) => sum + value * (b[i] ?? 0), 0);
}

function softmax(scores: number[]): number[] {
  const powers = scores.map((score) => Math.exp(score - Math.max(...scores)));
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}

/** By its power series, which converges everywhere. */
function errorFunction(x: number): number {
  if (Math.abs(x) > 5) return Math.sign(x);
  let term = x;
  let sum = x;
  for (let n = 1; Math.abs(term) > 1e-17; n++) {
    term *= -(x * x) / n;
    sum += term / (2 * n + 1);
  }
  return (2 / Math.sqrt(Math.PI)) * sum;
}

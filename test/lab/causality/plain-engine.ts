/**
 * A model so small that it can be seen through: an activation is the mean of its prompt's words so far, and what comes next is
 * read from it after a norm. Words have a concept that the answer is read from, and a correlate that nothing is read from.
 */

import type { Engine, ForwardRequest, Intervention, Variant } from '../../../src/lab/core/engine.ts';
import { createRandom } from '../../../src/lab/statistics/random.ts';
import { addScaled, dot, norm } from '../../../src/lab/statistics/vectors.ts';

const WIDTH = 96;
const AXES = { constant: 0, concept: 1, correlate: 2, question: 3 };
const PLAIN = Array.from({ length: 40 }, (_, i) => `word${i}`);
const GOOD = Array.from({ length: 10 }, (_, i) => `good${i}`);
const BAD = Array.from({ length: 10 }, (_, i) => `bad${i}`);
const VOCABULARY = ['yes', 'no', 'maybe', '?', 'two', 'fold', ...GOOD, ...BAD, ...PLAIN];
/** Words of more than one token. */
const PIECES: Record<string, string[]> = { twofold: ['two', 'fold'] };

const ALL = VOCABULARY.map((_, token) => token);

export interface PlainEngineOptions {
  /** Of every request, before it is answered. */
  onRun?(request: ForwardRequest, number: number): void;
  /** Changes logits before they are given back. */
  spoil?(logits: Float32Array, request: ForwardRequest): void;
  /** How far the answer is read from the concept. */
  gain?: number;
  /** How far it is read from the correlate, too, so that what is read has two dimensions. */
  second?: number;
}

export function createPlainEngine({ onRun, spoil, gain = 1, second = 0 }: PlainEngineOptions = {}): Engine {
  const random = createRandom(1, 'plain engine');
  const embeddings = VOCABULARY.map((word) => {
    const vector = Float64Array.from({ length: WIDTH }, (_, axis) => (axis > 3 ? 0.4 * random.normal() : 0));
    vector[AXES.constant] = 3;
    vector[AXES.question] = word === '?' ? 4 : 0;
    const sign = GOOD.includes(word) ? 1 : BAD.includes(word) ? -1 : 0;
    // They go together, but not to the letter, or there would be no telling them apart.
    vector[AXES.concept] = sign * (2 + 4 * random.uniform());
    vector[AXES.correlate] = sign * (2 + 4 * random.uniform());
    return vector;
  });
  const readers = VOCABULARY.map((word) => {
    const vector = Float64Array.from({ length: WIDTH }, (_, axis) => (axis > 3 ? 0.3 * random.normal() : 0));
    const answers = word === 'yes' || word === 'no';
    // Without a question they are the last thing to be said.
    vector[AXES.constant] = answers ? -2 : random.normal();
    vector[AXES.question] = answers ? 20 : 0;
    vector[AXES.concept] = gain * ({ yes: 3, no: -3 }[word] ?? 0);
    vector[AXES.correlate] = second * ({ yes: 3, no: -3 }[word] ?? 0);
    return vector;
  });
  let runs = 0;

  const known = new Map<string, Float64Array[]>();
  function plainActivations(tokens: readonly number[]): Float64Array[] {
    const key = tokens.join(' ');
    const found = known.get(key) ?? meansOf(tokens);
    known.set(key, found);
    return found;
  }

  function meansOf(tokens: readonly number[]): Float64Array[] {
    const sum = new Float64Array(WIDTH);
    return tokens.map((token, position) => {
      addScaled(sum, embeddings[token] ?? sum, 0, 1);
      return sum.map((value) => value / (position + 1));
    });
  }

  function activations(tokens: readonly number[], interventions: readonly Intervention[]): Float64Array[] {
    const vectors = [...plainActivations(tokens)];
    for (const one of interventions) {
      for (const place of places(one.positions, tokens.length)) {
        vectors[place] = intervene(vectors[place] ?? new Float64Array(WIDTH), one);
      }
    }
    return vectors;
  }

  function logitsOf(vector: Float64Array, tokens: readonly number[] = ALL): Float64Array {
    const length = norm(vector);
    const logits = new Float64Array(tokens.length);
    for (const [i, token] of tokens.entries()) logits[i] = (4 * product(vector, readers[token] ?? vector)) / length;
    return logits;
  }

  function runVariant(request: ForwardRequest, { prompt, interventions }: Variant) {
    const tokens = request.prompts[prompt] ?? [];
    const vectors = activations(tokens, interventions);
    const at = (positions: readonly number[]) => positions.flatMap((position) => vectors[position] ?? []);
    const taps = (request.taps ?? []).map((tap) => joined(at(places(tap.positions, tokens.length))));
    const { logits } = request;
    const values =
      logits && joined(at(places(logits.positions, tokens.length)).map((vector) => logitsOf(vector, logits.tokens)));
    if (values) spoil?.(values, request);
    return {
      activations: taps,
      ...(values && { logits: values }),
      ...(request.surprise && { surprise: surprise(tokens, vectors) }),
    };
  }

  function surprise(tokens: readonly number[], vectors: readonly Float64Array[]) {
    const base = plainActivations(tokens).map((vector) => logSoftmax(logitsOf(vector)));
    const changed = vectors.map((vector) => logSoftmax(logitsOf(vector)));
    return {
      logProbabilities: Float32Array.from(tokens.slice(1), (token, i) => changed[i]?.[token] ?? 0),
      divergences: Float32Array.from(base, (before, i) =>
        before.reduce((total, value, token) => total + Math.exp(value) * (value - (changed[i]?.[token] ?? 0)), 0),
      ),
    };
  }

  return {
    describe: () => ({
      id: 'plain',
      engine: 'embedded',
      architecture: 'Plain',
      layers: 1,
      width: WIDTH,
      heads: 1,
      vocabulary: VOCABULARY.length,
      context: 64,
      parameters: 2 * WIDTH * VOCABULARY.length,
      dtype: 'float64',
      device: 'cpu',
      weights: 'weights',
      tokenizer: 'tokenizer',
    }),
    tokenize: async (texts) =>
      texts.map((text) =>
        text
          .split(' ')
          .filter((word) => word !== '')
          .flatMap((word) => PIECES[word] ?? [word])
          .map((word) => VOCABULARY.indexOf(word))
          .filter((token) => token >= 0),
      ),
    detokenize: async (tokens) => tokens.map((token) => VOCABULARY[token]).join(' '),
    async run(request, signal) {
      signal?.throwIfAborted();
      onRun?.(request, runs++);
      const plain = request.prompts.map((_, prompt) => ({ prompt, interventions: [] }));
      return (request.variants ?? plain).map((variant) => runVariant(request, variant));
    },
    generate: async () => [],
    encodeSae: async () => new Float32Array(),
    close: async () => {},
  };
}

/** A direction along one axis that has a name. */
export function axis(name: keyof typeof AXES): number[] {
  return Array.from({ length: WIDTH }, (_, i) => (i === AXES[name] ? 2 : 0));
}

/** Pairs of prompts that differ in one word. */
export function plainPairs(count: number, seed = 1) {
  const random = createRandom(seed, 'plain pairs');
  return Array.from({ length: count }, (_, pair) => {
    const words = Array.from({ length: 3 + random.integer(2) }, () => random.choose(PLAIN));
    const row = (label: 0 | 1) => ({
      prompt: [...words, random.choose(label === 1 ? GOOD : BAD), '?'].join(' '),
      label,
      pair: `${pair}`,
    });
    return [row(1), row(0)];
  }).flat();
}

export const NEUTRAL = Array.from({ length: 6 }, (_, i) => PLAIN.slice(5 * i, 5 * i + 8).join(' '));

function places(positions: readonly number[] | { from: number }, length: number): number[] {
  const absolute = (position: number) => (position < 0 ? position + length : position);
  if (!('from' in positions)) return positions.map(absolute);
  return Array.from({ length: length - absolute(positions.from) }, (_, i) => absolute(positions.from) + i);
}

function intervene(vector: Float64Array, one: Intervention): Float64Array {
  if (one.kind === 'add') return vector.map((value, i) => value + (one.vector[i] ?? 0));
  if (one.kind === 'set') return Float64Array.from(one.vector);
  const square = dot(one.direction, one.direction);
  const along = (values: Float32Array | Float64Array) => {
    const share = dot(values, one.direction) / square;
    return (axis: number) => share * (one.direction[axis] ?? 0);
  };
  if (one.kind === 'project-out') {
    const part = along(vector);
    return vector.map((value, i) => value - part(i));
  }
  const [own, other] = one.part === 'along' ? [vector, one.source] : [Float64Array.from(one.source), vector];
  const [removed, added] = [along(own), along(other)];
  return own.map((value, i) => value - removed(i) + added(i));
}

/** Takes most of the time of these tests, so it is for one kind of array alone. */
function product(a: Float64Array, b: Float64Array): number {
  let sum = 0;
  for (let i = 0; i < WIDTH; i++) sum += (a[i] as number) * (b[i] as number);
  return sum;
}

function joined(vectors: readonly Float64Array[]): Float32Array {
  const width = vectors[0]?.length ?? 0;
  const all = new Float32Array(vectors.length * width);
  for (const [index, vector] of vectors.entries()) all.set(vector, index * width);
  return all;
}

function logSoftmax(logits: Float64Array): Float64Array {
  const largest = Math.max(...logits);
  const total = Math.log(logits.reduce((sum, value) => sum + Math.exp(value - largest), 0)) + largest;
  return logits.map((value) => value - total);
}

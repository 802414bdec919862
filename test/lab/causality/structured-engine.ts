/**
 * A model whose structure a test writes down: an activation is the sum of its prompt's words, words of a class carry numbers on named axes, and the answers'
 * logits are a function of what is on them after a norm. Everything else is noise, which other words are read from.
 */

import type { CausalQuestion, DatasetRow } from '../../../src/lab/causality/question.ts';
import type { Engine, ForwardRequest, Intervention, Variant } from '../../../src/lab/core/engine.ts';
import { missing } from '../../../src/lab/core/missing.ts';
import { resolvePositions } from '../../../src/lab/core/positions.ts';
import { createRandom, type Random } from '../../../src/lab/statistics/random.ts';
import { dot, norm } from '../../../src/lab/statistics/vectors.ts';

const WIDTH = 48;
/** On axis 0, in every activation: so large that the norm hardly changes from prompt to prompt. */
const CONSTANT = 12;
const NAMED = ['constant', 'x', 'y', 'u', 'v', 'context', 'dormant'] as const;
const AXES: readonly string[] = NAMED;
const NOISE = 0.15;
const PER_CLASS = 12;
const PLAIN = Array.from({ length: 40 }, (_, i) => `word${i}`);
const CONTEXTS = ['left', 'right'] as const;

type Axis = (typeof NAMED)[number];
type Along = Partial<Record<Axis, number>>;

export interface Structure {
  classes: number;
  /** What the words of a class carry; `context` is -1 for left and 1 for right. */
  carries(label: number, context: number, random: Random): Along;
  /** The logit of each class's answer, from what is on the axes; `label` is the class of the prompt's word, for what passes by the site. */
  answers(at: (axis: Axis) => number, label: number): number[];
}

export interface StructuredModel {
  engine: Engine;
  /** Groups of prompts that differ in nothing but the class's word, one of each class. */
  rows(groups: number, seed: number): DatasetRow[];
  question(dataset: DatasetRow[], changes?: Partial<CausalQuestion>): CausalQuestion;
}

export function axisOf(name: Axis): number[] {
  return Array.from({ length: WIDTH }, (_, i) => (i === NAMED.indexOf(name) ? 1 : 0));
}

export function createStructured({ classes, carries, answers }: Structure, seed = 1): StructuredModel {
  const random = createRandom(seed, 'structured engine');
  const labels = Array.from({ length: classes }, (_, label) => label);
  const answerWords = labels.map((label) => `answer${label}`);
  const wordFor = (label: number, context: string, i: number) => `${context}${label}w${i}`;
  const carriers = new Map(
    labels.flatMap((label) =>
      CONTEXTS.flatMap((context) =>
        Array.from({ length: PER_CLASS }, (_, i) => [wordFor(label, context, i), { label, context }] as const),
      ),
    ),
  );
  const vocabulary = [...answerWords, '?', ...CONTEXTS, ...PLAIN, ...carriers.keys()];
  const embeddings = vocabulary.map((word) => {
    const vector = Float64Array.from({ length: WIDTH }, (_, i) => (i < NAMED.length ? 0 : NOISE * random.normal()));
    const carrier = carriers.get(word);
    const along: Along = carrier
      ? carries(carrier.label, carrier.context === 'left' ? -1 : 1, random)
      : { context: word === 'left' ? -1 : word === 'right' ? 1 : 0 };
    for (const [name, value] of Object.entries(along)) vector[AXES.indexOf(name)] = value;
    return vector;
  });
  const readers = vocabulary.map(() =>
    Float64Array.from({ length: WIDTH }, (_, i) => (i === 0 ? 0.1 : i < NAMED.length ? 0 : 0.6) * random.normal()),
  );

  function activationAt(tokens: readonly number[], position: number, interventions: readonly Intervention[]) {
    let vector = new Float64Array(WIDTH);
    vector[0] = CONSTANT;
    for (const token of tokens.slice(0, position + 1)) {
      const own = embeddings[token] ?? missing('token', token);
      vector = vector.map((value, i) => value + (own[i] ?? 0));
    }
    for (const one of interventions) {
      if ('from' in one.positions || !resolvePositions(one.positions, tokens.length).includes(position)) continue;
      if (one.kind === 'add') vector = vector.map((value, i) => value + (one.vector[i] ?? Number.NaN));
      else if (one.kind === 'set') vector = Float64Array.from(one.vector);
      else throw new Error(`The structured model has no ${one.kind}.`);
    }
    return vector;
  }

  function logitsOf(vector: Float64Array, isAsked: boolean, label: number): Float64Array {
    const scale = CONSTANT / norm(vector);
    const logits = Float64Array.from(readers, (reader) => scale * dot(vector, reader));
    const found = answers((axis) => scale * (vector[NAMED.indexOf(axis)] ?? missing('axis', axis)), label);
    found.forEach((logit, label) => {
      logits[label] = logit + (isAsked ? 8 : -8) * scale;
    });
    return logits;
  }

  function runVariant(request: ForwardRequest, { prompt, interventions }: Variant) {
    const tokens = request.prompts[prompt] ?? missing('prompt', prompt);
    const at = (position: number, changes = interventions) => activationAt(tokens, position, changes);
    const isAsked = (position: number) => vocabulary[tokens[position] ?? -1] === '?';
    const label =
      tokens.map((token) => carriers.get(vocabulary[token] ?? '')?.label).find((one) => one !== undefined) ?? 0;
    const { taps = [], logits, surprise } = request;
    const wanted = logits && 'from' in logits.positions ? missing('positions') : logits;
    return {
      activations: taps.map(({ positions }) => {
        if ('from' in positions) throw new Error('The structured model is read at positions.');
        return flat(resolvePositions(positions, tokens.length).map((position) => at(position)));
      }),
      ...(wanted && {
        logits: flat(
          resolvePositions(wanted.positions, tokens.length).map((position) => {
            const all = logitsOf(at(position), isAsked(position), label);
            return wanted.tokens ? Float64Array.from(wanted.tokens, (token) => all[token] ?? Number.NaN) : all;
          }),
        ),
      }),
      ...(surprise && {
        surprise: {
          logProbabilities: Float32Array.from(tokens.slice(1), () => -1),
          divergences: Float32Array.from(tokens, () => 0),
        },
      }),
    };
  }

  /** A word that it does not know is as good as any plain one. */
  const tokenOf = (word: string) =>
    vocabulary.includes(word) ? vocabulary.indexOf(word) : vocabulary.indexOf(PLAIN[word.length % PLAIN.length] ?? '');

  const engine: Engine = {
    describe: () => ({
      id: 'structured',
      engine: 'embedded',
      architecture: 'Structured',
      layers: 1,
      width: WIDTH,
      heads: 1,
      vocabulary: vocabulary.length,
      context: 64,
      parameters: 2 * WIDTH * vocabulary.length,
      dtype: 'float64',
      device: 'cpu',
      weights: 'weights',
      tokenizer: 'tokenizer',
    }),
    tokenize: async (texts) => texts.map((text) => text.split(' ').filter(Boolean).map(tokenOf)),
    detokenize: async (tokens) => tokens.map((token) => vocabulary[token]).join(' '),
    async run(request, signal) {
      signal?.throwIfAborted();
      const plain = request.prompts.map((_, prompt) => ({ prompt, interventions: [] }));
      return (request.variants ?? plain).map((variant) => runVariant(request, variant));
    },
    generate: async () => [],
    encodeSae: async () => new Float32Array(),
    close: async () => {},
  };

  return {
    engine,
    rows(groups, rowsSeed) {
      const chance = createRandom(rowsSeed, 'structured rows');
      return Array.from({ length: groups }, (_, group) => {
        const context = CONTEXTS[group % 2 === 0 ? 0 : 1];
        const words = Array.from({ length: 3 }, () => chance.choose(PLAIN));
        return labels.map((label) => ({
          prompt: [context, ...words, wordFor(label, context, chance.integer(PER_CLASS)), '?'].join(' '),
          label,
          pair: `group ${group}`,
        }));
      }).flat();
    },
    question: (dataset, changes = {}) => {
      const [negative = missing('class'), positive = missing('class'), ...others] = answerWords.map((word) => [word]);
      return {
        site: { layer: 0, place: 'resid_post', position: -1 },
        direction: { kind: 'fit', method: 'difference-of-means' },
        dataset,
        target: { positive, negative, ...(others.length > 0 && { others }) },
        neutralPrompts: [PLAIN.slice(0, 6).join(' '), PLAIN.slice(6, 12).join(' ')],
        seed: 1,
        ...changes,
      };
    },
  };
}

function flat(vectors: readonly Float64Array[]): Float32Array {
  return Float32Array.from(vectors.flatMap((vector) => [...vector]));
}

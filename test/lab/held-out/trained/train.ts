/** Trains a GPT-2 of two blocks to answer by the content word. Only the first block attends, so that all it answers by passes through the end after it. */

import { missing } from '../../../../src/lab/core/missing.ts';
import { createRandom, type Random } from '../../../../src/lab/statistics/random.ts';
import type { ModelFolder } from '../family.ts';
import { folderOf, type Linear } from '../model-folder.ts';
import { singles } from '../prompts.ts';
import { createLexicon, type Lexicon, PLAIN_WORDS } from '../vocabulary.ts';
import { createTape, descend, type Parameter } from './tape.ts';

const WIDTH = 32;
const POSITIONS = 16;
const STEPS = 200;
const BATCH = 8;
const RATE = 0.015;
/** How often the answer in training is any plain word. */
const ANY_WORD = 0.1;

export interface Trained {
  files: ModelFolder;
  lexicon: Lexicon;
}

export function trainModel(name: string, seed: number): Trained {
  const random = createRandom(seed, `held-out training ${name}`);
  const lexicon = createLexicon(random, { contentWords: 16 });
  const weights = initialWeights(lexicon.words.length, random);
  const ids = new Map(lexicon.words.map((word, id) => [word, id]));
  const idOf = (word: string) => ids.get(word) ?? missing('token of', word);
  for (let step = 1; step <= STEPS; step++) {
    for (const { prompt, label } of singles(random, { 1: BATCH / 2, 0: BATCH / 2 }, lexicon.content)) {
      const answer = random.uniform() < ANY_WORD ? random.choose(PLAIN_WORDS) : label === 1 ? 'yes' : 'no';
      learn(weights, prompt.split(' ').map(idOf), idOf(answer));
    }
    descend(Object.values(weights), step, RATE * (1 - step / (STEPS + 1)));
  }
  return { files: filesOf(weights, lexicon), lexicon };
}

type Weights = ReturnType<typeof initialWeights>;

function initialWeights(vocabulary: number, random: Random) {
  const square = () => parameter(WIDTH, WIDTH, 1 / Math.sqrt(WIDTH), random);
  return {
    embedding: parameter(vocabulary, WIDTH, 0.25, random),
    positions: parameter(POSITIONS, WIDTH, 0.2, random),
    query: square(),
    key: square(),
    value: square(),
    output: square(),
    inner: square(),
    down: square(),
    laterInner: square(),
    laterDown: square(),
    unembedding: parameter(vocabulary, WIDTH, 0.2, random),
  };
}

function learn(weights: Weights, tokens: readonly number[], answer: number): void {
  const tape = createTape();
  const rows = tokens.map((token, at) => tape.add(tape.row(weights.embedding, token), tape.row(weights.positions, at)));
  const normed = rows.map(tape.norm);
  const last = (vectors: typeof rows) => vectors.at(-1) ?? missing('last token');
  const attended = tape.attend(
    tape.linear(weights.query, last(normed)),
    normed.map((row) => tape.linear(weights.key, row)),
    normed.map((row) => tape.linear(weights.value, row)),
  );
  const mlp = (x: (typeof rows)[number], inner: Parameter, down: Parameter) =>
    tape.add(x, tape.linear(down, tape.gelu(tape.linear(inner, tape.norm(x)))));
  const first = mlp(tape.add(last(rows), tape.linear(weights.output, attended)), weights.inner, weights.down);
  const second = mlp(first, weights.laterInner, weights.laterDown);
  tape.learn(tape.linear(weights.unembedding, tape.norm(second)), answer);
}

function filesOf(weights: Weights, { words }: Lexicon): ModelFolder {
  const ones = new Float64Array(WIDTH).fill(1);
  const nothing: Linear = { rows: WIDTH, columns: WIDTH, values: new Float64Array(WIDTH * WIDTH) };
  const norms = { attentionNorm: ones, mlpNorm: ones, gateOpen: nothing };
  const { query, key, value, output, inner, down, laterInner, laterDown, ...ends } = weights;
  const layers = [
    { ...norms, query, key, value, output, inner, down },
    { ...norms, query: nothing, key: nothing, value: nothing, output: nothing, inner: laterInner, down: laterDown },
  ];
  const shape = { kind: 'gpt2', width: WIDTH, layers: 2, heads: 1, headWidth: WIDTH, hidden: WIDTH } as const;
  return folderOf({ words, ...ends, layers, finalNorm: ones }, shape);
}

export function parameter(rows: number, columns: number, size: number, random: Random): Parameter {
  const empty = () => new Float64Array(rows * columns);
  const values = empty().map(() => size * random.normal());
  return { rows, columns, values, gradient: empty(), mean: empty(), square: empty() };
}

/** Trains a GPT-2 of three blocks to a task. Only the second block attends, so that whatever an answer is made of is at its words before that, and at the end after it. */

import { missing } from '../../../../../src/lab/core/missing.ts';
import { createRandom, type Random } from '../../../../../src/lab/statistics/random.ts';
import type { ModelFolder } from '../../family.ts';
import { folderOf, type Linear } from '../../model-folder.ts';
import { createTape, descend, type Parameter, type Vector } from '../../trained/tape.ts';
import { parameter } from '../../trained/train.ts';
import type { Lexicon } from '../../vocabulary.ts';

const WIDTH = 32;
const POSITIONS = 16;
const BATCH = 8;
const RATE = 0.012;

export interface Task {
  name: string;
  steps: number;
  lexicon(random: Random): Lexicon;
  /** A prompt, and the chances of the words that are to follow it. */
  draw(random: Random, lexicon: Lexicon): { prompt: string; answers: ReadonlyMap<string, number> };
}

export interface Learnt {
  files: ModelFolder;
  lexicon: Lexicon;
}

export function learnTask(task: Task, seed: number): Learnt {
  const random = createRandom(seed, `held-out learning ${task.name}`);
  const lexicon = task.lexicon(random);
  const weights = initialWeights(lexicon.words.length, random);
  const ids = new Map(lexicon.words.map((word, id) => [word, id]));
  const idOf = (word: string) => ids.get(word) ?? missing('token of', word);
  for (let step = 1; step <= task.steps; step++) {
    for (let i = 0; i < BATCH; i++) {
      const { prompt, answers } = task.draw(random, lexicon);
      const wanted = new Map([...answers].map(([word, chance]) => [idOf(word), chance]));
      learn(weights, prompt.split(' ').map(idOf), wanted);
    }
    descend(Object.values(weights), step, RATE * (1 - step / (task.steps + 1)));
  }
  return { files: filesOf(weights, lexicon), lexicon };
}

type Weights = ReturnType<typeof initialWeights>;

function initialWeights(vocabulary: number, random: Random) {
  const square = () => parameter(WIDTH, WIDTH, 1 / Math.sqrt(WIDTH), random);
  return {
    embedding: parameter(vocabulary, WIDTH, 0.25, random),
    positions: parameter(POSITIONS, WIDTH, 0.1, random),
    firstInner: square(),
    firstDown: square(),
    query: square(),
    key: square(),
    value: square(),
    output: square(),
    secondInner: square(),
    secondDown: square(),
    thirdInner: square(),
    thirdDown: square(),
    unembedding: parameter(vocabulary, WIDTH, 0.2, random),
  };
}

function learn(weights: Weights, tokens: readonly number[], wanted: ReadonlyMap<number, number>): void {
  const tape = createTape();
  const mlp = (x: Vector, inner: Parameter, down: Parameter) =>
    tape.add(x, tape.linear(down, tape.gelu(tape.linear(inner, tape.norm(x)))));
  const first = tokens.map((token, at) =>
    mlp(
      tape.add(tape.row(weights.embedding, token), tape.row(weights.positions, at)),
      weights.firstInner,
      weights.firstDown,
    ),
  );
  const normed = first.map(tape.norm);
  const attended = tape.attend(
    tape.linear(weights.query, normed.at(-1) ?? missing('last token')),
    normed.map((row) => tape.linear(weights.key, row)),
    normed.map((row) => tape.linear(weights.value, row)),
  );
  const gathered = tape.add(first.at(-1) ?? missing('last token'), tape.linear(weights.output, attended));
  const second = mlp(gathered, weights.secondInner, weights.secondDown);
  const third = mlp(second, weights.thirdInner, weights.thirdDown);
  tape.learnChances(tape.linear(weights.unembedding, tape.norm(third)), wanted);
}

function filesOf(weights: Weights, { words }: Lexicon): ModelFolder {
  const ones = new Float64Array(WIDTH).fill(1);
  const nothing: Linear = { rows: WIDTH, columns: WIDTH, values: new Float64Array(WIDTH * WIDTH) };
  const norms = { attentionNorm: ones, mlpNorm: ones, gateOpen: nothing };
  const idle = { query: nothing, key: nothing, value: nothing, output: nothing };
  const { query, key, value, output, embedding, positions, unembedding } = weights;
  const layers = [
    { ...norms, ...idle, inner: weights.firstInner, down: weights.firstDown },
    { ...norms, query, key, value, output, inner: weights.secondInner, down: weights.secondDown },
    { ...norms, ...idle, inner: weights.thirdInner, down: weights.thirdDown },
  ];
  const shape = { kind: 'gpt2', width: WIDTH, layers: 3, heads: 1, headWidth: WIDTH, hidden: WIDTH } as const;
  return folderOf({ words, embedding, positions, unembedding, layers, finalNorm: ones }, shape);
}

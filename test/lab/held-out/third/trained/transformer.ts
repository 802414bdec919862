/** Trains a GPT-2 of three blocks of which only the second attends, so that what it knows of a word passes through that word before, and through the end after. */

import { missing } from '../../../../../src/lab/core/missing.ts';
import { createRandom, type Random } from '../../../../../src/lab/statistics/random.ts';
import { mean } from '../../../../../src/lab/statistics/summary.ts';
import type { ModelFolder } from '../../family.ts';
import { folderOf, type Linear } from '../../model-folder.ts';
import { createTape, descend, type Parameter, type Tape, type Vector } from '../../trained/tape.ts';

export interface Task {
  name: string;
  words(random: Random): readonly string[];
  /** Words that are answers in training, and that the model does not have any more when it is written. */
  dropped?: readonly string[];
  /** How many of the last numbers of the residual stream are read by the dropped words alone, which read nothing else. */
  notes?: number;
  /** A prompt, and the chances of the words after it. */
  draw(random: Random): { prompt: string; chances: Readonly<Record<string, number>> };
  steps: number;
  batch: number;
  rate: number;
}

export interface Trained {
  files: ModelFolder;
  /** The residual stream at the end after the last block. */
  final(prompt: string): Float64Array;
}

const WIDTH = 32;
const HEADS = 2;
const HIDDEN = 64;
const POSITIONS = 12;

/** Above what the chances leave uncertain, in nats, a model has not learned its task. */
const LEARNED = 0.08;
const ATTEMPTS = 3;

export function train(task: Task, seed: number): Trained {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const { excess, trained } = trainOnce(task, createRandom(seed, `third set, training ${task.name}, ${attempt}`));
    if (excess < LEARNED) return trained;
  }
  throw new Error(`No model learned the task ${task.name} with seed ${seed}.`);
}

function trainOnce(task: Task, random: Random): { excess: number; trained: Trained } {
  const kept = ['<unk>', ...task.words(random)];
  const words = [...kept, ...(task.dropped ?? [])];
  const ids = new Map(words.map((word, id) => [word, id]));
  const idOf = (word: string) => ids.get(word) ?? missing('token of', word);
  const tokensOf = (prompt: string) => prompt.split(' ').map(idOf);
  const weights = initialWeights(words.length, random);
  const { unembedding } = weights.all;
  const all = [...Object.values(weights.all), ...weights.heads.flatMap((head) => Object.values(head))];
  const recent: number[] = [];
  for (let step = 1; step <= task.steps; step++) {
    separateNotes();
    for (let i = 0; i < task.batch; i++) {
      const { prompt, chances } = task.draw(random);
      const tape = createTape();
      const { logits } = forward(tape, weights, tokensOf(prompt));
      const wanted = new Map(Object.entries(chances).map(([word, chance]) => [idOf(word), chance]));
      const surprise = tape.learnChances(logits, wanted);
      if (step > task.steps - 20) recent.push(surprise - entropyOf(Object.values(chances)));
    }
    const warm = Math.min(1, step / 20);
    descend(all, step, task.rate * warm * (1 - step / (task.steps + 1)));
  }
  separateNotes();
  const trained = {
    files: filesOf(weights, kept),
    final: (prompt: string) => forward(createTape(), weights, tokensOf(prompt)).final.value,
  };
  return { excess: mean(recent), trained };

  function separateNotes(): void {
    const { notes } = task;
    if (notes === undefined) return;
    for (let i = 0; i < unembedding.values.length; i++) {
      const [isNote, isDropped] = [i % WIDTH >= WIDTH - notes, Math.floor(i / WIDTH) >= kept.length];
      if (isNote !== isDropped) unembedding.values[i] = 0;
    }
  }
}

function entropyOf(chances: readonly number[]): number {
  return -chances.reduce((sum, chance) => sum + chance * Math.log(chance), 0);
}

type Weights = ReturnType<typeof initialWeights>;

function initialWeights(vocabulary: number, random: Random) {
  const of = (rows: number, columns: number, size = 1 / Math.sqrt(columns)) => parameter(rows, columns, size, random);
  const part = WIDTH / HEADS;
  return {
    heads: Array.from({ length: HEADS }, () => ({
      query: of(part, WIDTH),
      key: of(part, WIDTH),
      value: of(part, WIDTH),
      output: of(WIDTH, part, 0.15),
    })),
    all: {
      embedding: of(vocabulary, WIDTH, 0.3),
      positions: of(POSITIONS, WIDTH, 0.3),
      inner0: of(HIDDEN, WIDTH),
      down0: of(WIDTH, HIDDEN, 0.08),
      inner1: of(HIDDEN, WIDTH),
      down1: of(WIDTH, HIDDEN, 0.08),
      inner2: of(HIDDEN, WIDTH),
      down2: of(WIDTH, HIDDEN, 0.08),
      unembedding: of(vocabulary, WIDTH, 0.15),
    },
  };
}

function parameter(rows: number, columns: number, size: number, random: Random): Parameter {
  const empty = () => new Float64Array(rows * columns);
  const values = empty().map(() => size * random.normal());
  return { rows, columns, values, gradient: empty(), mean: empty(), square: empty() };
}

function forward(tape: Tape, { heads, all }: Weights, tokens: readonly number[]): { final: Vector; logits: Vector } {
  const mlp = (x: Vector, inner: Parameter, down: Parameter) =>
    tape.add(x, tape.linear(down, tape.gelu(tape.linear(inner, tape.norm(x)))));
  const rows = tokens.map((token, at) =>
    mlp(tape.add(tape.row(all.embedding, token), tape.row(all.positions, at)), all.inner0, all.down0),
  );
  const normed = rows.map(tape.norm);
  const last = normed.at(-1) ?? missing('last token');
  let end = rows.at(-1) ?? missing('last token');
  for (const { query, key, value, output } of heads) {
    const keys = normed.map((row) => tape.linear(key, row));
    const values = normed.map((row) => tape.linear(value, row));
    end = tape.add(end, tape.linear(output, tape.attend(tape.linear(query, last), keys, values)));
  }
  const final = mlp(mlp(end, all.inner1, all.down1), all.inner2, all.down2);
  return { final, logits: tape.linear(all.unembedding, tape.norm(final)) };
}

function filesOf({ heads, all }: Weights, words: readonly string[]): ModelFolder {
  const ones = new Float64Array(WIDTH).fill(1);
  const zeros = (rows: number, columns: number): Linear => ({
    rows,
    columns,
    values: new Float64Array(rows * columns),
  });
  const none = zeros(WIDTH, WIDTH);
  const shared = { attentionNorm: ones, mlpNorm: ones, gateOpen: zeros(HIDDEN, WIDTH) };
  const idle = { ...shared, query: none, key: none, value: none, output: none };
  const rows = (parts: readonly Parameter[]): Linear => ({
    rows: WIDTH,
    columns: WIDTH,
    values: Float64Array.from(parts.flatMap(({ values }) => [...values])),
  });
  const part = WIDTH / HEADS;
  const output: Linear = {
    rows: WIDTH,
    columns: WIDTH,
    values: Float64Array.from({ length: WIDTH * WIDTH }, (_, i) => {
      const [row, column] = [Math.floor(i / WIDTH), i % WIDTH];
      const head = heads[Math.floor(column / part)] ?? missing('head of column', column);
      return head.output.values[row * part + (column % part)] ?? missing('weight', i);
    }),
  };
  const attending = {
    ...shared,
    query: rows(heads.map(({ query }) => query)),
    key: rows(heads.map(({ key }) => key)),
    value: rows(heads.map(({ value }) => value)),
    output,
  };
  const ofWords = ({ values }: Parameter): Linear => ({
    rows: words.length,
    columns: WIDTH,
    values: values.slice(0, words.length * WIDTH),
  });
  const layers = [
    { ...idle, inner: all.inner0, down: all.down0 },
    { ...attending, inner: all.inner1, down: all.down1 },
    { ...idle, inner: all.inner2, down: all.down2 },
  ];
  const ends = { embedding: ofWords(all.embedding), positions: all.positions, unembedding: ofWords(all.unembedding) };
  const shape = { kind: 'gpt2', width: WIDTH, layers: 3, heads: HEADS, headWidth: part, hidden: HIDDEN } as const;
  return folderOf({ words, ...ends, layers, finalNorm: ones }, shape);
}

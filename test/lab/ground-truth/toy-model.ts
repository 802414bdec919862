/**
 * Hand-built transformers whose causal structure is known, of Llama's shape, written as Hugging Face writes models. Everything is
 * first written in a basis with names, and then turned by one random rotation, so that no axis means anything.
 */

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { encodeSafetensors, type TensorToWrite } from '../../../src/lab/formats/safetensors.ts';
import { createRandom, type Random } from '../../../src/lab/statistics/random.ts';
import { type Matrix, put, randomRotation, transpose, turnRows, zeros } from './matrices.ts';
import { CONCEPT_WORDS, CROSSED_WORDS, FLAGS, NO, QUESTION, tokenizerJson, VOCABULARY, YES } from './toy-words.ts';

const WIDTH = 128;
const LAYERS = 2;
const HEADS = 2;
const HEAD_WIDTH = 16;
const HIDDEN = 16;

/** What the model does with the concept. */
export type Mechanism = 'reads-concept' | 'heats' | 'reads-flag' | 'reads-part' | 'saturates' | 'reads-dormant';

/** Axes of the basis with names. Identity codes and noise take more than one axis, and the rest is empty. */
const AXES = {
  constant: 0,
  concept: 1,
  correlate: 2,
  copy: 3,
  temperature: 4,
  heat: 5,
  out: 6,
  question: 7,
  conceptMark: 8,
  flag: 9,
  flagMark: 10,
  dormant: 11,
} as const;
const IDENTITY = { from: 16, count: 32 };
const NOISE = { from: 48, count: 32 };

export type Axis = keyof typeof AXES;

/** The constant part of every activation: so large that norms hardly change from prompt to prompt. */
const CONSTANT = 8;
/** What the norm multiplies activations of about that length with. */
const NORM_FACTOR = 1.33;
/** Large enough that SiLU is as good as a ramp. */
const SHARPNESS = 8;
/** Of attention that is to look at one token only. The first of the pair that rotary positions turn slowest, so that distance does not matter. */
const FOCUS = { row: HEAD_WIDTH / 2 - 1, strength: 8 };

export interface Toy {
  /** A direction of the residual stream along axes with names, in the turned basis. */
  direction(parts: Partial<Record<Axis, number>>): Float64Array;
}

/** Writes config.json, tokenizer.json and model.safetensors. */
export function writeToyModel(folder: string, mechanism: Mechanism, seed: number): Toy {
  const random = createRandom(seed, `toy model ${mechanism}`);
  const rotation = randomRotation(WIDTH, random);
  const read = (matrix: Matrix) => turnRows(matrix, rotation);
  const write = (matrix: Matrix) => transpose(turnRows(transpose(matrix), rotation));
  const tensors: Record<string, Matrix> = {
    'model.embed_tokens.weight': read(embedding(random)),
    'lm_head.weight': read(unembedding(random)),
  };
  for (let layer = 0; layer < LAYERS; layer++) {
    const attention = layer === 0 ? gatheringAttention() : flagAttention(mechanism, random);
    const mlp = layer === 0 ? emptyMlp() : answeringMlp(mechanism, random);
    const name = `model.layers.${layer}`;
    tensors[`${name}.self_attn.q_proj.weight`] = read(attention.query);
    tensors[`${name}.self_attn.k_proj.weight`] = read(attention.key);
    tensors[`${name}.self_attn.v_proj.weight`] = read(attention.value);
    tensors[`${name}.self_attn.o_proj.weight`] = write(attention.output);
    tensors[`${name}.mlp.gate_proj.weight`] = read(mlp.gate);
    tensors[`${name}.mlp.up_proj.weight`] = read(mlp.up);
    tensors[`${name}.mlp.down_proj.weight`] = write(mlp.down);
  }
  const norms = ['model.norm', ...[0, 1].flatMap((layer) => NORMS.map((norm) => `model.layers.${layer}.${norm}`))];
  mkdirSync(folder, { recursive: true });
  const files = {
    'config.json': JSON.stringify(CONFIG, null, 2),
    'tokenizer.json': JSON.stringify(tokenizerJson(), null, 2),
    'model.safetensors': encodeSafetensors({
      ...Object.fromEntries(Object.entries(tensors).map(([name, matrix]) => [name, tensorOf(matrix)])),
      ...Object.fromEntries(norms.map((name) => [`${name}.weight`, ONES])),
    }),
  };
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
  return {
    direction(parts) {
      const named = zeros(1, WIDTH);
      for (const [axis, column] of Object.entries(AXES))
        put(named, 0, column, Object.entries(parts).find(([name]) => name === axis)?.[1] ?? 0);
      return read(named).values;
    },
  };
}

const CONFIG = {
  architectures: ['LlamaForCausalLM'],
  model_type: 'llama',
  hidden_size: WIDTH,
  intermediate_size: HIDDEN,
  num_hidden_layers: LAYERS,
  num_attention_heads: HEADS,
  num_key_value_heads: HEADS,
  head_dim: HEAD_WIDTH,
  vocab_size: VOCABULARY.length,
  max_position_embeddings: 64,
  hidden_act: 'silu',
  rms_norm_eps: 1e-6,
  rope_theta: 10000,
  attention_bias: false,
  mlp_bias: false,
  tie_word_embeddings: false,
  torch_dtype: 'float32',
};

const NORMS = ['input_layernorm', 'post_attention_layernorm'];
const ONES: TensorToWrite = { dtype: 'F32', shape: [WIDTH], data: new Float32Array(WIDTH).fill(1) };

function tensorOf({ rows, columns, values }: Matrix): TensorToWrite {
  return { dtype: 'F32', shape: [rows, columns], data: Float32Array.from(values) };
}

/** Every word has the constant, a code of its own and noise; some have what they stand for. */
function embedding(random: Random): Matrix {
  const matrix = zeros(VOCABULARY.length, WIDTH);
  VOCABULARY.forEach((word, row) => {
    put(matrix, row, AXES.constant, CONSTANT);
    fill(matrix, row, IDENTITY, () => random.normal() / Math.sqrt(IDENTITY.count));
    fill(matrix, row, NOISE, () => 0.15 * random.normal());
    if (word === QUESTION) put(matrix, row, AXES.question, 1);
    for (const [label, flag] of Object.entries(FLAGS)) {
      if (word !== flag) continue;
      put(matrix, row, AXES.flag, label === '1' ? 1 : -1);
      put(matrix, row, AXES.flagMark, 1);
    }
  });
  const concept = (word: string, sign: number, correlate: number) => {
    const row = VOCABULARY.indexOf(word);
    // What goes along with the concept does not do so to the letter, or there would be no telling them apart.
    const jitter = () => 0.5 + random.uniform();
    put(matrix, row, AXES.conceptMark, 1);
    put(matrix, row, AXES.concept, sign * jitter());
    put(matrix, row, AXES.copy, sign * jitter());
    put(matrix, row, AXES.correlate, correlate * jitter());
    put(matrix, row, AXES.temperature, sign * jitter());
  };
  for (const word of CONCEPT_WORDS[1]) concept(word, 1, 1);
  for (const word of CONCEPT_WORDS[0]) concept(word, -1, -1);
  for (const word of CROSSED_WORDS[1]) concept(word, 1, -1);
  for (const word of CROSSED_WORDS[0]) concept(word, -1, 1);
  return matrix;
}

/** Yes and no come after the question mark and are read from `out`; other words are read from the constant and from codes. */
function unembedding(random: Random): Matrix {
  const matrix = zeros(VOCABULARY.length, WIDTH);
  VOCABULARY.forEach((word, row) => {
    const answers = word === YES || word === NO;
    put(matrix, row, AXES.constant, answers ? 0.2 : 0.15 * random.normal());
    if (answers) {
      put(matrix, row, AXES.question, 2.5);
      put(matrix, row, AXES.out, word === YES ? 0.5 : -0.5);
    } else fill(matrix, row, IDENTITY, () => 0.3 * random.normal());
  });
  return matrix;
}

interface Attention {
  query: Matrix;
  key: Matrix;
  value: Matrix;
  output: Matrix;
}

function emptyAttention(): Attention {
  const inner = HEADS * HEAD_WIDTH;
  return {
    query: zeros(inner, WIDTH),
    key: zeros(inner, WIDTH),
    value: zeros(inner, WIDTH),
    output: zeros(WIDTH, inner),
  };
}

/** The first head takes what a concept word stands for to the question mark; the second takes a mean of all codes everywhere. */
function gatheringAttention(): Attention {
  const attention = emptyAttention();
  focus(attention, AXES.conceptMark);
  [AXES.concept, AXES.correlate, AXES.copy, AXES.temperature].forEach((axis, row) => {
    copy(attention, row, axis, axis, 1);
  });
  for (let i = 4; i < HEAD_WIDTH; i++) copy(attention, i, NOISE.from + i, NOISE.from + i, 1);
  for (let i = 0; i < HEAD_WIDTH; i++) copy(attention, HEAD_WIDTH + i, IDENTITY.from + i, IDENTITY.from + i, 1);
  return attention;
}

/** Straight from the flag at the prompt's beginning to the answer. */
function flagAttention(mechanism: Mechanism, random: Random): Attention {
  const attention = emptyAttention();
  if (mechanism !== 'reads-flag') return attention;
  focus(attention, AXES.flagMark);
  copy(attention, 0, AXES.flag, AXES.out, answerGain(random));
  return attention;
}

/** The question mark looks at the token with this mark; other tokens look everywhere. */
function focus({ query, key }: Attention, mark: number): void {
  put(query, FOCUS.row, AXES.question, FOCUS.strength);
  put(key, FOCUS.row, mark, FOCUS.strength);
}

function copy({ value, output }: Attention, row: number, from: number, to: number, gain: number): void {
  put(value, row, from, 1 / NORM_FACTOR);
  put(output, to, row, gain);
}

interface Mlp {
  gate: Matrix;
  up: Matrix;
  down: Matrix;
}

function emptyMlp(): Mlp {
  return { gate: zeros(HIDDEN, WIDTH), up: zeros(HIDDEN, WIDTH), down: zeros(WIDTH, HIDDEN) };
}

/** Units work at the question mark only. */
function answeringMlp(mechanism: Mechanism, random: Random): Mlp {
  const mlp = emptyMlp();
  let units = 0;
  const gain = answerGain(random);

  function ramp(reads: Partial<Record<Axis, number>>, to: Axis, slope: number): void {
    for (const [axis, column] of Object.entries(AXES)) {
      const weight = Object.entries(reads).find(([name]) => name === axis)?.[1] ?? 0;
      put(mlp.gate, units, column, SHARPNESS * weight);
    }
    put(mlp.up, units, AXES.question, 1 / NORM_FACTOR);
    put(mlp.down, AXES[to], units, slope / (SHARPNESS * NORM_FACTOR));
    units++;
  }
  /** SiLU of x less SiLU of −x is x. */
  function line(axis: Axis, slope: number): void {
    ramp({ [axis]: 1 }, 'out', slope);
    ramp({ [axis]: -1 }, 'out', -slope);
  }

  switch (mechanism) {
    case 'reads-concept':
      line('concept', gain);
      break;
    case 'heats':
      // The answer is always yes; only how sure it is goes with the label, by way of the norm.
      ramp({ constant: 1 / CONSTANT }, 'out', gain);
      ramp({ temperature: -1 }, 'heat', 10 + 4 * random.uniform());
      break;
    case 'reads-part':
      line('concept', 0.3 * gain);
      line('copy', 0.7 * gain);
      break;
    case 'saturates': {
      // From −1 to 1 as concept and copy together go from −bound to bound, and level beyond.
      const bound = 0.8;
      const at = (level: number) => ({ concept: 1, copy: 1, constant: level / CONSTANT });
      ramp(at(bound), 'out', gain / bound);
      ramp(at(-bound), 'out', -gain / bound);
      ramp({ constant: 1 / CONSTANT }, 'out', -gain);
      break;
    }
    case 'reads-dormant':
      line('concept', gain);
      line('dormant', gain);
      break;
    case 'reads-flag':
      break;
  }
  return mlp;
}

function answerGain(random: Random): number {
  return 1.6 + 0.8 * random.uniform();
}

function fill(matrix: Matrix, row: number, axes: { from: number; count: number }, value: () => number): void {
  for (let i = 0; i < axes.count; i++) put(matrix, row, axes.from + i, value());
}

/** Writes the matrices of a hand-built model as Hugging Face stores Llama, GPT-2 and GPT-NeoX models. */

import { encodeSafetensors, type TensorToWrite } from '../../../../src/lab/formats/safetensors.ts';
import { type Matrix, stackRows, transpose, zeros } from './matrices.ts';

export type Shape = 'llama' | 'gpt2' | 'gpt-neox';

export const HEAD_WIDTH = 16;
const CONTEXT = 64;

export interface LayerWeights {
  /** Rows head by head. */
  query: Matrix;
  key: Matrix;
  value: Matrix;
  output: Matrix;
  /** What the activation function is applied to. */
  read: Matrix;
  /** What that is multiplied by, where MLPs are gated. */
  gate: Matrix;
  write: Matrix;
}

export interface ModelWeights {
  embedding: Matrix;
  unembedding: Matrix;
  layers: readonly LayerWeights[];
}

type Tensors = Record<string, Matrix | Float32Array>;
type Stored = { config: object; tensors: Tensors };

/** config.json and model.safetensors. */
export function storeAs(shape: Shape, weights: ModelWeights): Record<string, Uint8Array | string> {
  const { config, tensors } = SHAPES[shape](weights, sizesOf(weights));
  return {
    'config.json': JSON.stringify({ ...config, torch_dtype: 'float32' }, null, 2),
    'model.safetensors': encodeSafetensors(
      Object.fromEntries(Object.entries(tensors).map(([name, tensor]) => [name, tensorOf(tensor)])),
    ),
  };
}

/** GPT-2 and GPT-NeoX divide the width among the heads; in Llama there may be fewer, but transformers wants a number that divides the width. */
export function headsFor(shape: Shape, width: number, needed: number): number {
  if (shape !== 'llama') return width / HEAD_WIDTH;
  let heads = needed;
  while (width % heads !== 0) heads += 1;
  return heads;
}

const SHAPES: Record<Shape, (weights: ModelWeights, sizes: Sizes) => Stored> = { llama, gpt2, 'gpt-neox': gptNeox };

interface Sizes {
  vocabulary: number;
  width: number;
  hidden: number;
  inner: number;
  heads: number;
  layers: number;
}

function sizesOf({ embedding, layers: [first, ...others] }: ModelWeights): Sizes {
  if (!first) throw new RangeError('A model has a layer at least.');
  const inner = first.query.rows;
  const { rows: vocabulary, columns: width } = embedding;
  const sizes = { vocabulary, width, hidden: first.read.rows, inner, heads: inner / HEAD_WIDTH };
  return { ...sizes, layers: 1 + others.length };
}

function llama({ embedding, unembedding, layers }: ModelWeights, sizes: Sizes): Stored {
  const tensors: Tensors = {
    'model.embed_tokens.weight': embedding,
    'model.norm.weight': ones(sizes.width),
    'lm_head.weight': unembedding,
  };
  layers.forEach(({ query, key, value, output, read, gate, write }, i) => {
    const layer = `model.layers.${i}`;
    Object.assign(tensors, {
      [`${layer}.input_layernorm.weight`]: ones(sizes.width),
      [`${layer}.self_attn.q_proj.weight`]: query,
      [`${layer}.self_attn.k_proj.weight`]: key,
      [`${layer}.self_attn.v_proj.weight`]: value,
      [`${layer}.self_attn.o_proj.weight`]: output,
      [`${layer}.post_attention_layernorm.weight`]: ones(sizes.width),
      [`${layer}.mlp.gate_proj.weight`]: read,
      [`${layer}.mlp.up_proj.weight`]: gate,
      [`${layer}.mlp.down_proj.weight`]: write,
    });
  });
  const config = {
    architectures: ['LlamaForCausalLM'],
    model_type: 'llama',
    hidden_size: sizes.width,
    intermediate_size: sizes.hidden,
    num_hidden_layers: sizes.layers,
    num_attention_heads: sizes.heads,
    num_key_value_heads: sizes.heads,
    head_dim: HEAD_WIDTH,
    vocab_size: sizes.vocabulary,
    max_position_embeddings: CONTEXT,
    hidden_act: 'silu',
    rms_norm_eps: 1e-6,
    rope_theta: 10000,
    attention_bias: false,
    mlp_bias: false,
    tie_word_embeddings: false,
  };
  return { config, tensors };
}

function gpt2({ embedding, unembedding, layers }: ModelWeights, sizes: Sizes): Stored {
  const tensors: Tensors = {
    'transformer.wte.weight': embedding,
    'transformer.wpe.weight': zeros(CONTEXT, sizes.width),
    ...norm('transformer.ln_f', sizes.width),
    'lm_head.weight': unembedding,
  };
  layers.forEach(({ query, key, value, output, read, write }, i) => {
    const layer = `transformer.h.${i}`;
    Object.assign(tensors, {
      ...norm(`${layer}.ln_1`, sizes.width),
      ...linear(`${layer}.attn.c_attn`, stackRows([query, key, value]), transpose),
      ...linear(`${layer}.attn.c_proj`, output, transpose),
      ...norm(`${layer}.ln_2`, sizes.width),
      ...linear(`${layer}.mlp.c_fc`, read, transpose),
      ...linear(`${layer}.mlp.c_proj`, write, transpose),
    });
  });
  const config = {
    architectures: ['GPT2LMHeadModel'],
    model_type: 'gpt2',
    n_embd: sizes.width,
    n_inner: sizes.hidden,
    n_layer: sizes.layers,
    n_head: sizes.heads,
    n_positions: CONTEXT,
    vocab_size: sizes.vocabulary,
    activation_function: 'gelu_new',
    layer_norm_epsilon: 1e-5,
    tie_word_embeddings: false,
  };
  return { config, tensors };
}

function gptNeox({ embedding, unembedding, layers }: ModelWeights, sizes: Sizes): Stored {
  const tensors: Tensors = {
    'gpt_neox.embed_in.weight': embedding,
    ...norm('gpt_neox.final_layer_norm', sizes.width),
    'embed_out.weight': unembedding,
  };
  layers.forEach(({ query, key, value, output, read, write }, i) => {
    const layer = `gpt_neox.layers.${i}`;
    const headOf = ({ columns, values }: Matrix, head: number): Matrix => {
      const size = HEAD_WIDTH * columns;
      return { rows: HEAD_WIDTH, columns, values: values.subarray(head * size, (head + 1) * size) };
    };
    const fused = Array.from({ length: sizes.heads }, (_, head) =>
      [query, key, value].map((matrix) => headOf(matrix, head)),
    ).flat();
    Object.assign(tensors, {
      ...norm(`${layer}.input_layernorm`, sizes.width),
      ...linear(`${layer}.attention.query_key_value`, stackRows(fused)),
      ...linear(`${layer}.attention.dense`, output),
      ...norm(`${layer}.post_attention_layernorm`, sizes.width),
      ...linear(`${layer}.mlp.dense_h_to_4h`, read),
      ...linear(`${layer}.mlp.dense_4h_to_h`, write),
    });
  });
  const config = {
    architectures: ['GPTNeoXForCausalLM'],
    model_type: 'gpt_neox',
    hidden_size: sizes.width,
    intermediate_size: sizes.hidden,
    num_hidden_layers: sizes.layers,
    num_attention_heads: sizes.heads,
    vocab_size: sizes.vocabulary,
    max_position_embeddings: CONTEXT,
    hidden_act: 'gelu',
    layer_norm_eps: 1e-5,
    rotary_pct: 0.25,
    rotary_emb_base: 10000,
    use_parallel_residual: true,
    tie_word_embeddings: false,
  };
  return { config, tensors };
}

function norm(name: string, width: number): Tensors {
  return { [`${name}.weight`]: ones(width), [`${name}.bias`]: new Float32Array(width) };
}

/** With a bias of zeros. */
function linear(name: string, matrix: Matrix, stored = (one: Matrix) => one): Tensors {
  return { [`${name}.weight`]: stored(matrix), [`${name}.bias`]: new Float32Array(matrix.rows) };
}

function ones(count: number): Float32Array {
  return new Float32Array(count).fill(1);
}

function tensorOf(tensor: Matrix | Float32Array): TensorToWrite {
  if (tensor instanceof Float32Array) return { dtype: 'F32', shape: [tensor.length], data: tensor };
  const { rows, columns, values } = tensor;
  return { dtype: 'F32', shape: [rows, columns], data: Float32Array.from(values) };
}

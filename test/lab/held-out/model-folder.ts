/** Names the parts of a small transformer as each architecture does, and encodes them with config.json and tokenizer.json. */

import { encodeSafetensors, type TensorToWrite } from '../../../src/lab/formats/safetensors.ts';
import type { ModelFolder } from './family.ts';
import { tokenizerOf } from './vocabulary.ts';

export interface Shape {
  kind: 'llama' | 'gpt2' | 'neox';
  width: number;
  layers: number;
  heads: number;
  headWidth: number;
  hidden: number;
}

/** Row-major, [out, in]. */
export interface Linear {
  rows: number;
  columns: number;
  values: Float64Array;
}

/** Biases are 0 where an architecture has them. */
export interface Parts {
  words: readonly string[];
  embedding: Linear;
  positions: Linear;
  layers: readonly {
    attentionNorm: Float64Array;
    query: Linear;
    key: Linear;
    value: Linear;
    output: Linear;
    mlpNorm: Float64Array;
    /** What the activation function is applied to. */
    inner: Linear;
    /** What multiplies that in a gated MLP. */
    gateOpen: Linear;
    down: Linear;
  }[];
  finalNorm: Float64Array;
  unembedding: Linear;
}

const POSITIONS = 32;

export function folderOf(parts: Parts, shape: Shape): ModelFolder {
  const describe = { llama, gpt2, neox }[shape.kind];
  const { config, tensors } = describe(parts, shape);
  return {
    'config.json': JSON.stringify({ ...config, torch_dtype: 'float32' }, null, 2),
    'tokenizer.json': JSON.stringify(tokenizerOf(parts.words), null, 2),
    'model.safetensors': encodeSafetensors(tensors),
  };
}

interface Described {
  config: object;
  tensors: Record<string, TensorToWrite>;
}

function llama({ words, layers, ...parts }: Parts, shape: Shape): Described {
  const tensors: Record<string, TensorToWrite> = {
    'model.embed_tokens.weight': matrix(parts.embedding),
    'model.norm.weight': vector(parts.finalNorm),
    'lm_head.weight': matrix(parts.unembedding),
  };
  layers.forEach((layer, i) => {
    const name = `model.layers.${i}`;
    tensors[`${name}.input_layernorm.weight`] = vector(layer.attentionNorm);
    tensors[`${name}.self_attn.q_proj.weight`] = matrix(layer.query);
    tensors[`${name}.self_attn.k_proj.weight`] = matrix(layer.key);
    tensors[`${name}.self_attn.v_proj.weight`] = matrix(layer.value);
    tensors[`${name}.self_attn.o_proj.weight`] = matrix(layer.output);
    tensors[`${name}.post_attention_layernorm.weight`] = vector(layer.mlpNorm);
    tensors[`${name}.mlp.gate_proj.weight`] = matrix(layer.inner);
    tensors[`${name}.mlp.up_proj.weight`] = matrix(layer.gateOpen);
    tensors[`${name}.mlp.down_proj.weight`] = matrix(layer.down);
  });
  const config = {
    architectures: ['LlamaForCausalLM'],
    model_type: 'llama',
    hidden_size: shape.width,
    intermediate_size: shape.hidden,
    num_hidden_layers: shape.layers,
    num_attention_heads: shape.heads,
    num_key_value_heads: shape.heads,
    head_dim: shape.headWidth,
    vocab_size: words.length,
    max_position_embeddings: POSITIONS,
    hidden_act: 'silu',
    rms_norm_eps: 1e-6,
    rope_theta: 1e6,
    attention_bias: false,
    mlp_bias: false,
    tie_word_embeddings: false,
  };
  return { config, tensors };
}

function gpt2({ words, layers, ...parts }: Parts, { width, ...shape }: Shape): Described {
  const tensors: Record<string, TensorToWrite> = {
    'transformer.wte.weight': matrix(parts.embedding),
    'transformer.wpe.weight': matrix(parts.positions),
    ...layerNorm('transformer.ln_f', parts.finalNorm),
    'lm_head.weight': matrix(parts.unembedding),
  };
  layers.forEach((layer, i) => {
    const name = `transformer.h.${i}`;
    const fused = stacked([layer.query, layer.key, layer.value]);
    Object.assign(tensors, layerNorm(`${name}.ln_1`, layer.attentionNorm), layerNorm(`${name}.ln_2`, layer.mlpNorm));
    for (const [part, linear] of [
      ['attn.c_attn', fused],
      ['attn.c_proj', layer.output],
      ['mlp.c_fc', layer.inner],
      ['mlp.c_proj', layer.down],
    ] as const) {
      tensors[`${name}.${part}.weight`] = matrix(transposed(linear));
      tensors[`${name}.${part}.bias`] = vector(new Float64Array(linear.rows));
    }
  });
  const config = {
    architectures: ['GPT2LMHeadModel'],
    model_type: 'gpt2',
    n_embd: width,
    n_inner: shape.hidden,
    n_layer: shape.layers,
    n_head: shape.heads,
    n_positions: parts.positions.rows,
    vocab_size: words.length,
    activation_function: 'gelu_new',
    layer_norm_epsilon: 1e-5,
    tie_word_embeddings: false,
  };
  return { config, tensors };
}

function neox({ words, layers, ...parts }: Parts, shape: Shape): Described {
  const tensors: Record<string, TensorToWrite> = {
    'gpt_neox.embed_in.weight': matrix(parts.embedding),
    ...layerNorm('gpt_neox.final_layer_norm', parts.finalNorm),
    'embed_out.weight': matrix(parts.unembedding),
  };
  layers.forEach((layer, i) => {
    const name = `gpt_neox.layers.${i}`;
    const heads = Array.from({ length: shape.heads }, (_, head) =>
      [layer.query, layer.key, layer.value].map((linear) => headRows(linear, head, shape.headWidth)),
    );
    Object.assign(
      tensors,
      layerNorm(`${name}.input_layernorm`, layer.attentionNorm),
      layerNorm(`${name}.post_attention_layernorm`, layer.mlpNorm),
    );
    for (const [part, linear] of [
      ['attention.query_key_value', stacked(heads.flat())],
      ['attention.dense', layer.output],
      ['mlp.dense_h_to_4h', layer.inner],
      ['mlp.dense_4h_to_h', layer.down],
    ] as const) {
      tensors[`${name}.${part}.weight`] = matrix(linear);
      tensors[`${name}.${part}.bias`] = vector(new Float64Array(linear.rows));
    }
  });
  const config = {
    architectures: ['GPTNeoXForCausalLM'],
    model_type: 'gpt_neox',
    hidden_size: shape.width,
    intermediate_size: shape.hidden,
    num_hidden_layers: shape.layers,
    num_attention_heads: shape.heads,
    vocab_size: words.length,
    max_position_embeddings: POSITIONS,
    hidden_act: 'gelu',
    layer_norm_eps: 1e-5,
    rotary_pct: 0.25,
    use_parallel_residual: true,
    tie_word_embeddings: false,
  };
  return { config, tensors };
}

function matrix({ rows, columns, values }: Linear): TensorToWrite {
  return { dtype: 'F32', shape: [rows, columns], data: Float32Array.from(values) };
}

function vector(values: Float64Array): TensorToWrite {
  return { dtype: 'F32', shape: [values.length], data: Float32Array.from(values) };
}

function layerNorm(name: string, weight: Float64Array): Record<string, TensorToWrite> {
  return { [`${name}.weight`]: vector(weight), [`${name}.bias`]: vector(new Float64Array(weight.length)) };
}

function stacked(parts: readonly Linear[]): Linear {
  const columns = parts[0]?.columns ?? 0;
  const values = new Float64Array(parts.reduce((sum, part) => sum + part.values.length, 0));
  let at = 0;
  for (const part of parts) {
    values.set(part.values, at);
    at += part.values.length;
  }
  return { rows: values.length / columns, columns, values };
}

function headRows({ columns, values }: Linear, head: number, headWidth: number): Linear {
  const size = headWidth * columns;
  return { rows: headWidth, columns, values: values.slice(head * size, (head + 1) * size) };
}

function transposed({ rows, columns, values }: Linear): Linear {
  const turned = Float64Array.from(values, (_, i) => values[(i % rows) * columns + Math.floor(i / rows)] ?? Number.NaN);
  return { rows: columns, columns: rows, values: turned };
}

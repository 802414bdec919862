/** Lays out models whose tensors are named like those of Llama; families differ in their norms, biases, scales and windows, and each says where. */

import { z } from 'zod';
import { activation, count, SizesConfig, sizesOf } from './config-fields.ts';
import { type Layout, type Stored, someRows, wholeTensor } from './layout.ts';
import type { ModelSpec, QueryKeyNorm } from './model-spec.ts';
import { RotaryConfig, rotaryPositions } from './rotary.ts';

/** The fields of config.json that these families have in common. */
export const LlamaLikeConfig = RotaryConfig.extend({
  ...SizesConfig.shape,
  num_key_value_heads: count.nullish(),
  head_dim: count.nullish(),
  hidden_act: activation.default('silu'),
  tie_word_embeddings: z.boolean().default(false),
});

/** Where a family differs from the plainest one, which is Llama. */
export interface Differences {
  norm?: ModelSpec['norm'];
  normEpsilon: number;
  /** Added to the weights of norms. */
  normOffset?: number;
  /** What files call the norms of a block; those that are absent the family does not have. */
  norms?: BlockNorms;
  queryKeyValueBias?: boolean;
  outputBias?: boolean;
  mlpBias?: boolean;
  /** Query, key and value are one matrix, and gate and up are another. */
  fused?: boolean;
  queryKeyNorm?: QueryKeyNorm;
  parallel?: boolean;
  activation?: ModelSpec['activation'];
  /** By the layer's number. */
  window?: (layer: number) => number | undefined;
  positions?: ModelSpec['positions'];
  windowPositions?: ModelSpec['windowPositions'];
  embeddingScale?: number;
  /** What attention scores are multiplied by; 1 / √(head width) where it is absent. */
  attentionScale?: number;
  /** What attention and MLP add is multiplied by it. */
  residualScale?: number;
  logitScale?: number;
  attentionCap?: number | undefined;
  logitCap?: number | undefined;
}

interface BlockNorms {
  beforeAttention?: string;
  afterAttention?: string;
  beforeMlp?: string;
  afterMlp?: string;
}

const LLAMA_NORMS: BlockNorms = { beforeAttention: 'input_layernorm', beforeMlp: 'post_attention_layernorm' };

export function llamaLike(config: z.infer<typeof LlamaLikeConfig>, differences: Differences): Layout {
  const sizes = sizesOf(config);
  const headWidth = config.head_dim ?? sizes.width / sizes.heads;
  const { norm = 'rms', window } = differences;
  return {
    tensors: tensorsOf(config, differences),
    spec: {
      ...sizes,
      keyValueHeads: config.num_key_value_heads ?? sizes.heads,
      headWidth,
      context: config.max_position_embeddings,
      norm,
      normEpsilon: differences.normEpsilon,
      positions: differences.positions ?? rotaryPositions(config, headWidth),
      windowPositions: differences.windowPositions,
      embeddingScale: differences.embeddingScale ?? 1,
      activation: differences.activation ?? config.hidden_act,
      gated: true,
      parallel: differences.parallel ?? false,
      queryKeyNorm: differences.queryKeyNorm,
      window: Array.from({ length: sizes.layers }, (_, layer) => window?.(layer)),
      attentionCap: differences.attentionCap,
      logitCap: differences.logitCap,
    },
  };
}

function tensorsOf(config: z.infer<typeof LlamaLikeConfig>, differences: Differences): Map<string, Stored> {
  const { vocabulary, width, hidden, layers, heads } = sizesOf(config);
  const headWidth = config.head_dim ?? width / heads;
  const keyValueHeads = config.num_key_value_heads ?? heads;
  const queries = heads * headWidth;
  const keys = keyValueHeads * headWidth;
  const { norm: normKind = 'rms', norms = LLAMA_NORMS, normOffset: offset = 0, residualScale = 1 } = differences;
  const { queryKeyValueBias, outputBias, mlpBias, queryKeyNorm, fused, attentionScale, logitScale = 1 } = differences;
  // Engines divide scores by the root of the head's width; what a model does otherwise is made up for in its queries.
  const queryScale = attentionScale === undefined ? 1 : attentionScale * Math.sqrt(headWidth);
  const tensors = new Map<string, Stored>();

  const norm = (name: string, stored: string | undefined, scale = 1) => {
    if (stored === undefined) return;
    tensors.set(`${name}.weight`, { ...wholeTensor(namesOf(`${stored}.weight`), [width]), offset, scale });
    if (normKind === 'layer')
      tensors.set(`${name}.bias`, { ...wholeTensor(namesOf(`${stored}.bias`), [width]), scale });
  };
  const headNorms = (name: string, stored: string, count: number, scale = 1) => {
    const weight = (of: string, length: number) => ({
      ...wholeTensor(namesOf(`${of}.weight`), [length]),
      offset,
      scale,
    });
    if (queryKeyNorm === 'shared') tensors.set(`${name}.weight`, weight(`${stored}_norm`, headWidth));
    if (queryKeyNorm === 'whole') tensors.set(`${name}.weight`, weight(`${stored}_norm`, count * headWidth));
    if (queryKeyNorm !== 'each') return;
    for (let head = 0; head < count; head++)
      tensors.set(`${name}.${head}.weight`, weight(`${stored}_layernorm.norms.${head}`, headWidth));
  };
  const linear = (name: string, stored: string, shape: [number, number], { bias = false, scale = 1 } = {}) => {
    tensors.set(`${name}.weight`, { ...wholeTensor(namesOf(`${stored}.weight`), shape), scale });
    if (bias) tensors.set(`${name}.bias`, { ...wholeTensor(namesOf(`${stored}.bias`), [shape[0]]), scale });
  };
  /** Matrices with the same inputs, which some families store as one. */
  const side = (
    whole: string,
    parts: { name: string; stored: string; rows: number; scale?: number }[],
    bias = false,
  ) => {
    const total = parts.reduce((sum, { rows }) => sum + rows, 0);
    let first = 0;
    for (const { name, stored, rows, scale = 1 } of parts) {
      const fusedPart = { ...someRows(namesOf(`${whole}.weight`), [rows, width], { first, total }), scale };
      if (fused) tensors.set(`${name}.weight`, fusedPart);
      else linear(name, stored, [rows, width], { bias, scale });
      first += rows;
    }
  };

  tensors.set('embedding', wholeTensor(namesOf('embed_tokens.weight'), [vocabulary, width]));
  for (let layer = 0; layer < layers; layer++) {
    const attention = `layers.${layer}.attention`;
    const mlp = `layers.${layer}.mlp`;
    const from = `layers.${layer}`;
    const named = (name: string | undefined) => (name === undefined ? undefined : `${from}.${name}`);
    norm(`${attention}.norm`, named(norms.beforeAttention));
    const queriesScale = queryKeyNorm ? 1 : queryScale;
    const projections = [
      { name: `${attention}.query`, stored: `${from}.self_attn.q_proj`, rows: queries, scale: queriesScale },
      { name: `${attention}.key`, stored: `${from}.self_attn.k_proj`, rows: keys },
      { name: `${attention}.value`, stored: `${from}.self_attn.v_proj`, rows: keys },
    ];
    side(`${from}.self_attn.qkv_proj`, projections, queryKeyValueBias);
    headNorms(`${attention}.queryNorm`, `${from}.self_attn.q`, heads, queryScale);
    headNorms(`${attention}.keyNorm`, `${from}.self_attn.k`, keyValueHeads);
    const output = { bias: outputBias ?? false, scale: residualScale };
    linear(`${attention}.output`, `${from}.self_attn.o_proj`, [width, queries], output);
    norm(`${attention}.afterNorm`, named(norms.afterAttention));
    norm(`${mlp}.norm`, named(norms.beforeMlp));
    const gates = [
      { name: `${mlp}.gate`, stored: `${from}.mlp.gate_proj`, rows: hidden },
      { name: `${mlp}.up`, stored: `${from}.mlp.up_proj`, rows: hidden },
    ];
    side(`${from}.mlp.gate_up_proj`, gates, mlpBias);
    linear(`${mlp}.down`, `${from}.mlp.down_proj`, [width, hidden], { bias: mlpBias ?? false, scale: residualScale });
    norm(`${mlp}.afterNorm`, named(norms.afterMlp));
  }
  norm('final.norm', 'norm', logitScale);
  const unembedding = wholeTensor(['lm_head.weight'], [vocabulary, width]);
  tensors.set('unembedding.weight', { ...unembedding, optional: config.tie_word_embeddings });
  return tensors;
}

function namesOf(stored: string): string[] {
  return [`model.${stored}`, stored];
}

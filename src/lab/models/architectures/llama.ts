/** Describes Llama models, and Mistral, Qwen2 and Qwen3, which differ in their biases, windows and norms. */

import { z } from 'zod';
import { activation, count, epsilon, SizesConfig, sizesOf } from './config-fields.ts';
import { type Layout, type Stored, wholeTensor } from './layout.ts';
import { RotaryConfig, rotaryPositions } from './rotary.ts';

const Config = RotaryConfig.extend({
  ...SizesConfig.shape,
  num_key_value_heads: count.nullish(),
  head_dim: count.nullish(),
  hidden_act: activation.default('silu'),
  rms_norm_eps: epsilon.default(1e-6),
  tie_word_embeddings: z.boolean().default(false),
});

const Windows = z.object({
  use_sliding_window: z.boolean().default(false),
  sliding_window: count.nullish().default(4096),
  max_window_layers: z.number().int().nonnegative().default(28),
  layer_types: z.array(z.enum(['full_attention', 'sliding_attention'])).nullish(),
});

/** Where a family differs from the plainest one. */
interface Differences {
  queryKeyValueBias?: boolean;
  outputBias?: boolean;
  mlpBias?: boolean;
  queryKeyNorm?: boolean;
  /** By the layer's number. */
  window?: (layer: number) => number | undefined;
}

export function llama(json: unknown): Layout {
  const biases = z.object({ attention_bias: z.boolean().default(false), mlp_bias: z.boolean().default(false) });
  const { attention_bias: attention, mlp_bias: mlpBias } = biases.parse(json);
  return layoutOf(Config.parse(json), { queryKeyValueBias: attention, outputBias: attention, mlpBias });
}

export function mistral(json: unknown): Layout {
  const { sliding_window: window } = Windows.parse(json);
  return layoutOf(Config.parse(json), { window: () => window ?? undefined });
}

export function qwen2(json: unknown): Layout {
  return layoutOf(Config.parse(json), { queryKeyValueBias: true, window: qwenWindow(json) });
}

export function qwen3(json: unknown): Layout {
  const { attention_bias: bias } = z.object({ attention_bias: z.boolean().default(false) }).parse(json);
  const config = Config.extend({ head_dim: count.default(128) }).parse(json);
  const window = qwenWindow(json);
  return layoutOf(config, { queryKeyValueBias: bias, outputBias: bias, queryKeyNorm: true, window });
}

function qwenWindow(json: unknown): (layer: number) => number | undefined {
  const config = Windows.parse(json);
  return (layer) => {
    if (!config.use_sliding_window) return undefined;
    const usual = layer >= config.max_window_layers ? 'sliding_attention' : 'full_attention';
    const kind = config.layer_types ? config.layer_types[layer] : usual;
    return kind === 'sliding_attention' ? (config.sliding_window ?? undefined) : undefined;
  };
}

function layoutOf(config: z.infer<typeof Config>, differences: Differences): Layout {
  const sizes = sizesOf(config);
  const { vocabulary, width, hidden, layers, heads } = sizes;
  const headWidth = config.head_dim ?? width / heads;
  const keyValueHeads = config.num_key_value_heads ?? heads;
  const queries = heads * headWidth;
  const keys = keyValueHeads * headWidth;
  const tensors = new Map<string, Stored>();
  const vector = (name: string, stored: string, length = width) => {
    tensors.set(`${name}.weight`, wholeTensor(namesOf(`${stored}.weight`), [length]));
  };
  const linear = (name: string, stored: string, out: number, inner: number, bias = false) => {
    tensors.set(`${name}.weight`, wholeTensor(namesOf(`${stored}.weight`), [out, inner]));
    if (bias) tensors.set(`${name}.bias`, wholeTensor(namesOf(`${stored}.bias`), [out]));
  };

  const { queryKeyValueBias, outputBias, mlpBias, queryKeyNorm = false } = differences;
  tensors.set('embedding', wholeTensor(namesOf('embed_tokens.weight'), [vocabulary, width]));
  for (let layer = 0; layer < layers; layer++) {
    const attention = `layers.${layer}.attention`;
    const mlp = `layers.${layer}.mlp`;
    const from = `layers.${layer}`;
    vector(`${attention}.norm`, `${from}.input_layernorm`);
    linear(`${attention}.query`, `${from}.self_attn.q_proj`, queries, width, queryKeyValueBias);
    linear(`${attention}.key`, `${from}.self_attn.k_proj`, keys, width, queryKeyValueBias);
    linear(`${attention}.value`, `${from}.self_attn.v_proj`, keys, width, queryKeyValueBias);
    linear(`${attention}.output`, `${from}.self_attn.o_proj`, width, queries, outputBias);
    if (queryKeyNorm) {
      vector(`${attention}.queryNorm`, `${from}.self_attn.q_norm`, headWidth);
      vector(`${attention}.keyNorm`, `${from}.self_attn.k_norm`, headWidth);
    }
    vector(`${mlp}.norm`, `${from}.post_attention_layernorm`);
    linear(`${mlp}.gate`, `${from}.mlp.gate_proj`, hidden, width, mlpBias);
    linear(`${mlp}.up`, `${from}.mlp.up_proj`, hidden, width, mlpBias);
    linear(`${mlp}.down`, `${from}.mlp.down_proj`, width, hidden, mlpBias);
  }
  vector('final.norm', 'norm');
  const unembedding = wholeTensor(['lm_head.weight'], [vocabulary, width]);
  tensors.set('unembedding.weight', { ...unembedding, optional: config.tie_word_embeddings });

  return {
    tensors,
    spec: {
      ...sizes,
      keyValueHeads,
      headWidth,
      context: config.max_position_embeddings,
      norm: 'rms',
      normEpsilon: config.rms_norm_eps,
      positions: rotaryPositions(config, headWidth),
      activation: config.hidden_act,
      gated: true,
      parallel: false,
      queryKeyNorm,
      window: Array.from({ length: layers }, (_, layer) => differences.window?.(layer)),
    },
  };
}

function namesOf(stored: string): string[] {
  return [`model.${stored}`, stored];
}

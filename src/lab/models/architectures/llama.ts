/** Describes Llama models, and Mistral, Qwen2 and Qwen3, which differ in their biases, windows and norms. */

import { z } from 'zod';
import { count, epsilon, layerTypes } from './config-fields.ts';
import type { Layout } from './layout.ts';
import { LlamaLikeConfig, llamaLike } from './llama-like.ts';

const Config = LlamaLikeConfig.extend({ rms_norm_eps: epsilon.default(1e-6) });

const Windows = z.object({
  use_sliding_window: z.boolean().default(false),
  sliding_window: count.nullish().default(4096),
  max_window_layers: z.number().int().nonnegative().default(28),
  layer_types: layerTypes,
});

export function llama(json: unknown): Layout {
  const biases = z.object({ attention_bias: z.boolean().default(false), mlp_bias: z.boolean().default(false) });
  const { attention_bias: bias, mlp_bias: mlpBias } = biases.parse(json);
  const config = Config.parse(json);
  return llamaLike(config, {
    normEpsilon: config.rms_norm_eps,
    queryKeyValueBias: bias,
    outputBias: bias,
    mlpBias,
  });
}

export function mistral(json: unknown): Layout {
  const { sliding_window: window } = Windows.parse(json);
  const config = Config.parse(json);
  return llamaLike(config, { normEpsilon: config.rms_norm_eps, window: () => window ?? undefined });
}

export function qwen2(json: unknown): Layout {
  const config = Config.parse(json);
  return llamaLike(config, { normEpsilon: config.rms_norm_eps, queryKeyValueBias: true, window: qwenWindow(json) });
}

export function qwen3(json: unknown): Layout {
  const config = Config.extend({ head_dim: count.default(128), attention_bias: z.boolean().default(false) }).parse(
    json,
  );
  return llamaLike(config, {
    normEpsilon: config.rms_norm_eps,
    queryKeyValueBias: config.attention_bias,
    outputBias: config.attention_bias,
    queryKeyNorm: 'shared',
    window: qwenWindow(json),
  });
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

/** Describes StableLM models: layer norms, rotary embedding on a share of each head, and in some of them norms of each head's queries and keys, and parallel blocks. */

import { z } from 'zod';
import { epsilon } from './config-fields.ts';
import type { Layout } from './layout.ts';
import { LlamaLikeConfig, llamaLike } from './llama-like.ts';
import { rotaryPositions, rotatedOf } from './rotary.ts';

const Config = LlamaLikeConfig.extend({
  layer_norm_eps: epsilon.default(1e-5),
  use_qkv_bias: z.boolean().default(false),
  qk_layernorm: z.boolean().default(false),
  use_parallel_residual: z.boolean().default(false),
});

/** Where config.json has none, as StableLmConfig says. */
const USUAL_ROTARY_SHARE = 0.25;

export function stableLm(json: unknown): Layout {
  const config = Config.parse(json);
  const parallel = config.use_parallel_residual;
  const headWidth = config.hidden_size / config.num_attention_heads;
  return llamaLike(
    { ...config, head_dim: undefined },
    {
      norm: 'layer',
      normEpsilon: config.layer_norm_eps,
      norms: { beforeAttention: 'input_layernorm', ...(!parallel && { beforeMlp: 'post_attention_layernorm' }) },
      queryKeyValueBias: config.use_qkv_bias,
      parallel,
      positions: rotaryPositions(config, rotatedOf(config, headWidth, USUAL_ROTARY_SHARE)),
      ...(config.qk_layernorm && { queryKeyNorm: 'each' }),
    },
  );
}

/** Describes OLMo 2 models: norms behind attention and MLP and none before them, and norms over the whole of queries and keys. */

import { z } from 'zod';
import { epsilon } from './config-fields.ts';
import type { Layout } from './layout.ts';
import { LlamaLikeConfig, llamaLike } from './llama-like.ts';

const Config = LlamaLikeConfig.extend({
  rms_norm_eps: epsilon.default(1e-5),
  attention_bias: z.boolean().default(false),
});

export function olmo2(json: unknown): Layout {
  const config = Config.parse(json);
  return llamaLike(config, {
    normEpsilon: config.rms_norm_eps,
    norms: { afterAttention: 'post_attention_layernorm', afterMlp: 'post_feedforward_layernorm' },
    queryKeyNorm: 'whole',
    queryKeyValueBias: config.attention_bias,
    outputBias: config.attention_bias,
  });
}

/** Describes Granite models: Llama's, with factors on embeddings, attention scores, what blocks add, and logits. */

import { z } from 'zod';
import { epsilon } from './config-fields.ts';
import type { Layout } from './layout.ts';
import { LlamaLikeConfig, llamaLike } from './llama-like.ts';

const multiplier = z.number().positive().default(1);

const Config = LlamaLikeConfig.extend({
  rms_norm_eps: epsilon.default(1e-6),
  attention_bias: z.boolean().default(false),
  mlp_bias: z.boolean().default(false),
  embedding_multiplier: multiplier,
  attention_multiplier: multiplier,
  residual_multiplier: multiplier,
  logits_scaling: multiplier,
});

export function granite(json: unknown): Layout {
  const config = Config.parse(json);
  return llamaLike(config, {
    normEpsilon: config.rms_norm_eps,
    queryKeyValueBias: config.attention_bias,
    outputBias: config.attention_bias,
    mlpBias: config.mlp_bias,
    embeddingScale: config.embedding_multiplier,
    attentionScale: config.attention_multiplier,
    residualScale: config.residual_multiplier,
    logitScale: 1 / config.logits_scaling,
  });
}

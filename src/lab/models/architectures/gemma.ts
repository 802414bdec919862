/** Describes Gemma 2 and Gemma 3 (text): norms before and behind attention and MLP, windows in some of the layers, soft caps, two rotary bases in Gemma 3. */

import { z } from 'zod';
import { CuvetteError } from '../../../errors.ts';
import { activation, count, epsilon, layerTypes } from './config-fields.ts';
import type { Layout } from './layout.ts';
import { type Differences, LlamaLikeConfig, llamaLike } from './llama-like.ts';
import { RotaryConfig, rotaryPositions } from './rotary.ts';

const cap = z.number().positive().nullish();

/** The defaults are those of Gemma2Config and Gemma3TextConfig, for what config.json leaves out. */
const Config = LlamaLikeConfig.extend({
  num_key_value_heads: count.default(4),
  head_dim: count.default(256),
  hidden_activation: activation.default('gelu-tanh'),
  rms_norm_eps: epsilon.default(1e-6),
  attention_bias: z.boolean().default(false),
  tie_word_embeddings: z.boolean().default(true),
  query_pre_attn_scalar: z.number().positive().default(256),
  sliding_window: count.default(4096),
  layer_types: layerTypes,
  use_bidirectional_attention: z.boolean().nullish(),
});
type GemmaConfig = z.infer<typeof Config>;

const Gemma2Config = Config.extend({
  final_logit_softcapping: cap.default(30),
  attn_logit_softcapping: cap.default(50),
});

const Gemma3Config = Config.extend({
  max_position_embeddings: count.default(131_072),
  final_logit_softcapping: cap,
  sliding_window_pattern: count.default(6),
  rope_theta: z.number().positive().default(1_000_000),
  rope_local_base_freq: z.number().positive().default(10_000),
});

/** Transformers 5 writes rotary parameters for each kind of layer. */
const ByKind = z.object({
  full_attention: z.record(z.string(), z.unknown()).nullish(),
  sliding_attention: z.record(z.string(), z.unknown()).nullish(),
});

/** Every second layer of Gemma 2 attends to all positions. */
const GEMMA2_PATTERN = 2;

export function gemma2(json: unknown): Layout {
  const config = Gemma2Config.parse(json);
  return llamaLike(config, {
    ...gemma(config, GEMMA2_PATTERN),
    attentionCap: config.attn_logit_softcapping ?? undefined,
    logitCap: config.final_logit_softcapping ?? undefined,
  });
}

export function gemma3(json: unknown): Layout {
  const config = Gemma3Config.parse(json);
  const { full_attention: full, sliding_attention: sliding } = ByKind.parse(config.rope_parameters ?? {});
  const context = { max_position_embeddings: config.max_position_embeddings };
  const everywhere = { ...context, rope_theta: config.rope_theta, rope_scaling: config.rope_scaling };
  const inWindow = { ...context, rope_theta: config.rope_local_base_freq };
  return llamaLike(config, {
    ...gemma(config, config.sliding_window_pattern),
    queryKeyNorm: 'shared',
    logitCap: config.final_logit_softcapping ?? undefined,
    positions: rotaryPositions(RotaryConfig.parse({ ...everywhere, rope_parameters: full }), config.head_dim),
    windowPositions: rotaryPositions(RotaryConfig.parse({ ...inWindow, rope_parameters: sliding }), config.head_dim),
  });
}

/** What both have in common. `pattern` layers at a time, the last attends to all positions, and the others to a window. */
function gemma(config: GemmaConfig, pattern: number): Differences {
  if (config.use_bidirectional_attention) {
    throw new CuvetteError(
      'bad_model',
      'use_bidirectional_attention is set: the lab looks into decoders, which attend to earlier positions only.',
    );
  }
  return {
    normEpsilon: config.rms_norm_eps,
    normOffset: 1,
    norms: {
      beforeAttention: 'input_layernorm',
      afterAttention: 'post_attention_layernorm',
      beforeMlp: 'pre_feedforward_layernorm',
      afterMlp: 'post_feedforward_layernorm',
    },
    queryKeyValueBias: config.attention_bias,
    outputBias: config.attention_bias,
    activation: config.hidden_activation,
    embeddingScale: Math.sqrt(config.hidden_size),
    attentionScale: config.query_pre_attn_scalar ** -0.5,
    window: (layer) => {
      const usual = (layer + 1) % pattern === 0 ? 'full_attention' : 'sliding_attention';
      const kind = config.layer_types ? config.layer_types[layer] : usual;
      return kind === 'sliding_attention' ? config.sliding_window : undefined;
    },
  };
}

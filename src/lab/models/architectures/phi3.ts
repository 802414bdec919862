/** Describes Phi 3, Phi 3.5 and Phi 4 models: query, key and value in one matrix, gate and up in another, rotary embedding on a share of each head, longrope. */

import { count, epsilon } from './config-fields.ts';
import type { Layout } from './layout.ts';
import { LlamaLikeConfig, llamaLike } from './llama-like.ts';
import { rotaryPositions, rotatedOf } from './rotary.ts';

/** The defaults are those of Phi3Config. */
const Config = LlamaLikeConfig.extend({
  rms_norm_eps: epsilon.default(1e-5),
  original_max_position_embeddings: count.default(4096),
  sliding_window: count.nullish(),
});

export function phi3(json: unknown): Layout {
  const config = Config.parse(json);
  const headWidth = config.head_dim ?? config.hidden_size / config.num_attention_heads;
  const renamed = {
    ...config,
    rope_scaling: asLongrope(config.rope_scaling),
    rope_parameters: asLongrope(config.rope_parameters),
  };
  return llamaLike(config, {
    normEpsilon: config.rms_norm_eps,
    fused: true,
    window: () => config.sliding_window ?? undefined,
    positions: rotaryPositions(renamed, rotatedOf(renamed, headWidth, 1)),
  });
}

/** The first releases call longrope `su` or `yarn`. */
function asLongrope(given: Record<string, unknown> | null | undefined): typeof given {
  const kind = given?.rope_type ?? given?.type;
  return kind === 'su' || kind === 'yarn' ? { ...given, rope_type: 'longrope' } : given;
}

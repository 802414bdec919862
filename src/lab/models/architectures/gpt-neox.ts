/** Describes GPT-NeoX models such as Pythia: rotary embedding on a part of each head; query, key and value in one matrix, head by head. */

import { z } from 'zod';
import { activation, epsilon, SizesConfig, sizesOf } from './config-fields.ts';
import { fusedRows, type Layout, type Stored, wholeTensor } from './layout.ts';
import { RotaryConfig, rotaryPositions, rotatedOf } from './rotary.ts';

const Config = RotaryConfig.extend({
  ...SizesConfig.shape,
  hidden_act: activation.default('gelu'),
  layer_norm_eps: epsilon.default(1e-5),
  use_parallel_residual: z.boolean().default(true),
  attention_bias: z.boolean().default(true),
  tie_word_embeddings: z.boolean().default(false),
  rotary_pct: z.number().positive().max(1).nullish(),
  rotary_emb_base: z.number().positive().nullish(),
});

/** Where config.json has neither, as GPTNeoXConfig says. */
const USUAL_ROTARY_SHARE = 0.25;

export function gptNeox(json: unknown): Layout {
  const config = Config.parse(json);
  const sizes = sizesOf(config);
  const { vocabulary, width, hidden, layers, heads } = sizes;
  const headWidth = width / heads;
  const tensors = new Map<string, Stored>();
  const linear = (name: string, stored: string, out: number, inner: number, bias = true) => {
    tensors.set(`${name}.weight`, wholeTensor(namesOf(`${stored}.weight`), [out, inner]));
    if (bias) tensors.set(`${name}.bias`, wholeTensor(namesOf(`${stored}.bias`), [out]));
  };
  const norm = (name: string, stored: string) => {
    tensors.set(`${name}.weight`, wholeTensor(namesOf(`${stored}.weight`), [width]));
    tensors.set(`${name}.bias`, wholeTensor(namesOf(`${stored}.bias`), [width]));
  };

  tensors.set('embedding', wholeTensor(namesOf('embed_in.weight'), [vocabulary, width]));
  for (let layer = 0; layer < layers; layer++) {
    const to = `layers.${layer}`;
    const from = `layers.${layer}`;
    norm(`${to}.attention.norm`, `${from}.input_layernorm`);
    ['query', 'key', 'value'].forEach((name, part) => {
      const fused = namesOf(`${from}.attention.query_key_value.weight`);
      const bias = namesOf(`${from}.attention.query_key_value.bias`);
      tensors.set(`${to}.attention.${name}.weight`, fusedRows(fused, [width, width], { part, parts: 3, heads }));
      if (!config.attention_bias) return;
      tensors.set(`${to}.attention.${name}.bias`, fusedRows(bias, [width], { part, parts: 3, heads }));
    });
    linear(`${to}.attention.output`, `${from}.attention.dense`, width, width, config.attention_bias);
    norm(`${to}.mlp.norm`, `${from}.post_attention_layernorm`);
    linear(`${to}.mlp.up`, `${from}.mlp.dense_h_to_4h`, hidden, width);
    linear(`${to}.mlp.down`, `${from}.mlp.dense_4h_to_h`, width, hidden);
  }
  norm('final.norm', 'final_layer_norm');
  const unembedding = wholeTensor(['embed_out.weight', 'lm_head.weight'], [vocabulary, width]);
  tensors.set('unembedding.weight', { ...unembedding, optional: config.tie_word_embeddings });

  const rotated = rotatedOf(config, headWidth, config.rotary_pct ?? USUAL_ROTARY_SHARE);
  return {
    tensors,
    spec: {
      ...sizes,
      keyValueHeads: heads,
      headWidth,
      context: config.max_position_embeddings,
      norm: 'layer',
      normEpsilon: config.layer_norm_eps,
      positions: rotaryPositions({ ...config, rope_theta: config.rotary_emb_base ?? config.rope_theta }, rotated),
      activation: config.hidden_act,
      gated: false,
      parallel: config.use_parallel_residual,
      embeddingScale: 1,
      queryKeyNorm: undefined,
      window: Array.from({ length: layers }, () => undefined),
    },
  };
}

function namesOf(stored: string): string[] {
  return [`gpt_neox.${stored}`, stored];
}

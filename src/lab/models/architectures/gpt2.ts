/** Describes GPT-2 models: learned positions, and matrices stored as [in, out], with query, key and value in one. */

import { z } from 'zod';
import { activation, count, epsilon, layerCount } from './config-fields.ts';
import { fusedColumns, fusedRows, type Layout, type Stored, wholeTensor } from './layout.ts';

const Config = z.object({
  vocab_size: count,
  n_embd: count,
  n_layer: layerCount,
  n_head: count,
  n_positions: count,
  n_inner: count.nullish(),
  activation_function: activation.default('gelu-tanh'),
  layer_norm_epsilon: epsilon.default(1e-5),
  scale_attn_weights: z.boolean().default(true),
  scale_attn_by_inverse_layer_idx: z.boolean().default(false),
  tie_word_embeddings: z.boolean().default(true),
});

/** How much wider than the model an MLP is where config.json has no n_inner, as GPT2Config says. */
const USUAL_EXPANSION = 4;

export function gpt2(json: unknown): Layout {
  const config = Config.parse(json);
  const width = config.n_embd;
  const hidden = config.n_inner ?? USUAL_EXPANSION * width;
  const headWidth = width / config.n_head;
  const tensors = new Map<string, Stored>();
  const vector = (name: string, stored: string) => tensors.set(name, wholeTensor(namesOf(stored), [width]));
  const matrix = (name: string, stored: string, out: number, inner: number) => {
    tensors.set(`${name}.weight`, fusedColumns(namesOf(`${stored}.weight`), [out, inner], { part: 0, parts: 1 }));
    tensors.set(`${name}.bias`, wholeTensor(namesOf(`${stored}.bias`), [out]));
  };
  const norm = (name: string, stored: string) => {
    vector(`${name}.weight`, `${stored}.weight`);
    vector(`${name}.bias`, `${stored}.bias`);
  };

  tensors.set('embedding', wholeTensor(namesOf('wte.weight'), [config.vocab_size, width]));
  tensors.set('positions', wholeTensor(namesOf('wpe.weight'), [config.n_positions, width]));
  for (let layer = 0; layer < config.n_layer; layer++) {
    const to = `layers.${layer}`;
    const from = `h.${layer}`;
    norm(`${to}.attention.norm`, `${from}.ln_1`);
    ['query', 'key', 'value'].forEach((name, part) => {
      // Engines divide by the root of the head's width; what a model does otherwise is made up for in its queries.
      const scale = name === 'query' ? queryScale(config, headWidth, layer) : 1;
      const weight = fusedColumns(namesOf(`${from}.attn.c_attn.weight`), [width, width], { part, parts: 3 });
      const bias = fusedRows(namesOf(`${from}.attn.c_attn.bias`), [width], { part, parts: 3 });
      tensors.set(`${to}.attention.${name}.weight`, { ...weight, scale });
      tensors.set(`${to}.attention.${name}.bias`, { ...bias, scale });
    });
    matrix(`${to}.attention.output`, `${from}.attn.c_proj`, width, width);
    norm(`${to}.mlp.norm`, `${from}.ln_2`);
    matrix(`${to}.mlp.up`, `${from}.mlp.c_fc`, hidden, width);
    matrix(`${to}.mlp.down`, `${from}.mlp.c_proj`, width, hidden);
  }
  norm('final.norm', 'ln_f');
  const unembedding = wholeTensor(['lm_head.weight'], [config.vocab_size, width]);
  tensors.set('unembedding.weight', { ...unembedding, optional: config.tie_word_embeddings });

  return {
    tensors,
    spec: {
      layers: config.n_layer,
      width,
      heads: config.n_head,
      keyValueHeads: config.n_head,
      headWidth,
      hidden,
      vocabulary: config.vocab_size,
      context: config.n_positions,
      norm: 'layer',
      normEpsilon: config.layer_norm_epsilon,
      positions: { kind: 'learned' },
      activation: config.activation_function,
      gated: false,
      parallel: false,
      embeddingScale: 1,
      queryKeyNorm: undefined,
      window: Array.from({ length: config.n_layer }, () => undefined),
    },
  };
}

/** The oldest files leave the prefix out. */
function namesOf(stored: string): string[] {
  return [`transformer.${stored}`, stored];
}

function queryScale(config: z.infer<typeof Config>, headWidth: number, layer: number): number {
  const scaled = config.scale_attn_weights ? 1 : Math.sqrt(headWidth);
  return config.scale_attn_by_inverse_layer_idx ? scaled / (layer + 1) : scaled;
}

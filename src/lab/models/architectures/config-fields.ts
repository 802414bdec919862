/** Defines the fields of config.json that architectures have in common. */

import { z } from 'zod';
import type { Activation } from './model-spec.ts';

export const count = z.number().int().positive();
export const layerCount = count.max(1000);
export const epsilon = z.number().nonnegative();
export const activation = z
  .enum(['gelu', 'gelu_python', 'gelu_new', 'gelu_fast', 'gelu_pytorch_tanh', 'silu', 'swish', 'relu'])
  .transform((name): Activation => {
    if (name === 'relu') return 'relu';
    if (name === 'silu' || name === 'swish') return 'silu';
    return name === 'gelu' || name === 'gelu_python' ? 'gelu' : 'gelu-tanh';
  });

/** The sizes of a model, by the names that most architectures give them. */
export const SizesConfig = z.object({
  vocab_size: count,
  hidden_size: count,
  num_hidden_layers: layerCount,
  num_attention_heads: count,
  intermediate_size: count,
});

/** For each layer, whether it attends to all positions or to those in a window. */
export const layerTypes = z.array(z.enum(['full_attention', 'sliding_attention'])).nullish();

export function sizesOf(config: z.infer<typeof SizesConfig>) {
  const { vocab_size: vocabulary, hidden_size: width, intermediate_size: hidden } = config;
  return { vocabulary, width, hidden, layers: config.num_hidden_layers, heads: config.num_attention_heads };
}

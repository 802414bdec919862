/** Lists the architectures that Cuvette can compute, and reads the spec and tensor layout of a model from its config.json. */

import { join } from 'node:path';
import { z } from 'zod';
import { CuvetteError } from '../../../errors.ts';
import { readJsonObject } from '../../formats/json-object.ts';
import { gemma2, gemma3 } from './gemma.ts';
import { gptNeox } from './gpt-neox.ts';
import { gpt2 } from './gpt2.ts';
import { granite } from './granite.ts';
import type { Layout, Stored } from './layout.ts';
import { llama, mistral, qwen2, qwen3 } from './llama.ts';
import type { ModelSpec } from './model-spec.ts';
import { olmo2 } from './olmo2.ts';
import { phi3 } from './phi3.ts';
import { stableLm } from './stablelm.ts';

/** By the name in config.json's `architectures`; `type` is what stands in `model_type`. */
const FAMILIES: Record<string, { type: string; layout(config: unknown): Layout }> = {
  Gemma2ForCausalLM: { type: 'gemma2', layout: gemma2 },
  Gemma3ForCausalLM: { type: 'gemma3_text', layout: gemma3 },
  GPT2LMHeadModel: { type: 'gpt2', layout: gpt2 },
  GPTNeoXForCausalLM: { type: 'gpt_neox', layout: gptNeox },
  GraniteForCausalLM: { type: 'granite', layout: granite },
  LlamaForCausalLM: { type: 'llama', layout: llama },
  MistralForCausalLM: { type: 'mistral', layout: mistral },
  Olmo2ForCausalLM: { type: 'olmo2', layout: olmo2 },
  Phi3ForCausalLM: { type: 'phi3', layout: phi3 },
  Qwen2ForCausalLM: { type: 'qwen2', layout: qwen2 },
  Qwen3ForCausalLM: { type: 'qwen3', layout: qwen3 },
  StableLmForCausalLM: { type: 'stablelm', layout: stableLm },
};

/** What every family's config.json may say, and generation_config.json too. */
const Common = z.object({
  architectures: z.array(z.string()).nullish(),
  model_type: z.string().nullish(),
  quantization_config: z.looseObject({ quant_method: z.string().nullish() }).nullish(),
  eos_token_id: z.union([token(), z.array(token())]).nullish(),
});

export function readLayout(folder: string): { spec: ModelSpec; tensors: Map<string, Stored> } {
  const path = join(folder, 'config.json');
  const config = readJsonObject(path);
  if (!config) {
    const advice = 'A model folder has config.json, tokenizer.json and weights in safetensors; check the path.';
    throw new CuvetteError('bad_model', `There is no config.json in ${folder}. ${advice}`);
  }
  try {
    const { architecture, layout } = familyOf(config);
    const { spec, tensors } = layout(config);
    checkShape(spec);
    return { spec: { architecture, ...spec, endTokens: endTokensOf(folder, config) }, tensors };
  } catch (error) {
    if (error instanceof CuvetteError)
      throw new CuvetteError(error.code, `${path}: ${error.message}`, { cause: error });
    if (error instanceof z.ZodError) {
      throw new CuvetteError('bad_model', `${path} is not as expected:\n${z.prettifyError(error)}`, { cause: error });
    }
    throw error;
  }
}

function familyOf(config: Record<string, unknown>): { architecture: string; layout(config: unknown): Layout } {
  const { architectures, model_type, quantization_config } = Common.parse(config);
  const names = Object.keys(FAMILIES);
  const architecture = architectures?.[0] ?? names.find((name) => FAMILIES[name]?.type === model_type);
  const family = architecture !== undefined && Object.hasOwn(FAMILIES, architecture) && FAMILIES[architecture];
  if (!family) {
    const named = architecture ?? model_type ?? 'none that it names';
    throw new CuvetteError('bad_model', `the architecture is ${named}; Cuvette can compute ${names.join(', ')}.`);
  }
  if (quantization_config) {
    const method = quantization_config.quant_method ?? 'an unnamed method';
    const advice = 'Use the model it was made from, in float32, float16 or bfloat16.';
    throw new CuvetteError(
      'bad_model',
      `the weights are quantised by ${method}, which Cuvette does not read. ${advice}`,
    );
  }
  return { architecture, layout: family.layout };
}

function checkShape({ width, heads, keyValueHeads, headWidth, positions }: Layout['spec']): void {
  if (!Number.isInteger(headWidth)) {
    throw new CuvetteError('bad_model', `a width of ${width} cannot be divided among ${heads} heads.`);
  }
  if (heads % keyValueHeads !== 0) {
    throw new CuvetteError('bad_model', `${heads} heads cannot share ${keyValueHeads} keys and values evenly.`);
  }
  if (positions.kind === 'rotary' && 2 * positions.inverseFrequencies.length > headWidth) {
    throw new CuvetteError('bad_model', `rotary positions need heads of even width, and these have ${headWidth}.`);
  }
}

/** What generation_config.json says comes first, as when transformers generates. */
function endTokensOf(folder: string, config: Record<string, unknown>): number[] {
  const generation = Common.parse(readJsonObject(join(folder, 'generation_config.json')) ?? {});
  return [generation.eos_token_id ?? Common.parse(config).eos_token_id ?? []].flat();
}

function token() {
  return z.number().int().nonnegative();
}

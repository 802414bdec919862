import { createHash } from 'node:crypto';
import { cpSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { encodeSafetensors, openSafetensors, type TensorToWrite } from '../../../src/lab/formats/safetensors.ts';
import { openModelFolder } from '../../../src/lab/models/open-model.ts';
import { temporaryFolder } from '../../temporary-folder.ts';
import { largestDifference, openReference, PARITY_MODELS } from '../parity-reference.ts';
import { plainForward } from './plain-forward.ts';

describe.each(PARITY_MODELS)('the files of the model %s', (name) => {
  it('compute what transformers computes', async () => {
    const reference = openReference(name);
    const model = await openModelFolder(reference.folder);
    const run = plainForward(model, reference.tokens);
    model.close();
    expect(largestDifference(run.logits.flat(), reference.array('logits'))).toBeLessThan(5e-5);
    const places = { attn_out: run.attention, mlp_out: run.mlp, resid_post: run.residuals };
    for (const [place, layers] of Object.entries(places)) {
      expect(layers).toHaveLength(model.spec.layers);
      layers.forEach((rows, layer) => {
        const expected = reference.array(`blocks.${layer}.hook_${place}`);
        expect(largestDifference(rows.flat(), expected)).toBeLessThan(5e-5);
      });
    }
  });
});

describe('a model folder', () => {
  it('has its number of parameters counted as transformers does', async () => {
    const count = async (name: string) => {
      const model = await openModelFolder(openReference(name).folder);
      model.close();
      return model.parameters;
    };
    expect(await count('gpt2')).toBe(70_896);
    expect(await count('gpt-neox')).toBe(66_112);
    expect(await count('qwen3')).toBe(57_568);
  });

  it('is identified by hashes of its weights, in the order of their names, and of its tokenizer', async () => {
    const { folder } = openReference('llama');
    const model = await openModelFolder(folder);
    model.close();
    const shards = ['model-00001-of-00002.safetensors', 'model-00002-of-00002.safetensors'];
    expect(model.hashes).toEqual({
      weights: sha256(...shards.map((shard) => join(folder, shard))),
      tokenizer: sha256(join(folder, 'tokenizer.json')),
    });
  });

  it('has other hashes when its files have changed', async () => {
    const folder = copyOf('smollm');
    const before = await openModelFolder(folder);
    before.close();
    const weights = join(folder, 'model.safetensors');
    const content = readFileSync(weights);
    content[content.length - 1] = (content.at(-1) ?? 0) ^ 1;
    writeFileSync(weights, content);
    const after = await openModelFolder(folder);
    after.close();
    expect(after.hashes).toEqual({ weights: sha256(weights), tokenizer: before.hashes.tokenizer });
    expect(after.hashes.weights).not.toBe(before.hashes.weights);
  });

  it('says what ends a generation, generation_config.json before config.json', async () => {
    const endTokens = async (folder: string) => {
      const model = await openModelFolder(folder);
      model.close();
      return model.spec.endTokens;
    };
    const folder = copyOf('smollm');
    expect(await endTokens(folder)).toEqual([0]);
    writeFileSync(join(folder, 'generation_config.json'), '{"eos_token_id": [3, 5]}');
    expect(await endTokens(folder)).toEqual([3, 5]);
    writeFileSync(join(folder, 'generation_config.json'), '{}');
    change(join(folder, 'config.json'), { eos_token_id: null });
    expect(await endTokens(folder)).toEqual([]);
  });

  it('is opened by its model_type where no architecture is named', async () => {
    const folder = copyOf('smollm');
    change(join(folder, 'config.json'), { architectures: undefined });
    const model = await openModelFolder(folder);
    model.close();
    expect(model.spec.architecture).toBe('LlamaForCausalLM');
  });

  it('may hold an unembedding of its own although its config says that it is the embedding', async () => {
    const folder = copyOf('smollm');
    const unembedding = { dtype: 'F32', shape: [323, 36], data: new Float32Array(323 * 36) } as const;
    rewrite(folder, (tensors) => ({ ...tensors, 'lm_head.weight': unembedding }));
    const model = await openModelFolder(folder);
    model.close();
    expect(model.tensors.get('unembedding.weight')?.shape).toEqual([323, 36]);
  });

  it('stops being hashed when the signal is aborted', async () => {
    const folder = copyOf('smollm');
    await expect(openModelFolder(folder, AbortSignal.abort())).rejects.toThrow(/abort/i);
  });
});

describe('a model folder is refused', () => {
  const inConfig = (values: object) => (folder: string) => change(join(folder, 'config.json'), values);
  const removing = (file: string) => (folder: string) => rmSync(join(folder, file));
  const writing = (file: string, content: string) => (folder: string) => writeFileSync(join(folder, file), content);
  const inIndex = (values: object) => (folder: string) => change(join(folder, 'model.safetensors.index.json'), values);
  const shard = 'model-00001-of-00002.safetensors';

  it.each<[string, string, (folder: string) => void, RegExp]>([
    ['without config.json', 'smollm', removing('config.json'), /no config\.json in .*cuvette-/],
    ['with a config.json that is no JSON', 'smollm', writing('config.json', '{'), /config\.json cannot be read/],
    ['with a config.json that is a list', 'smollm', writing('config.json', '[]'), /it is not an object/],
    ['without tokenizer.json', 'smollm', removing('tokenizer.json'), /no tokenizer\.json in .*cuvette-/],
    [
      'with a tokenizer.json that is none',
      'smollm',
      writing('tokenizer.json', '{}'),
      /tokenizer\.json is no tokenizer/,
    ],
    [
      'of an architecture that is not supported',
      'smollm',
      inConfig({ architectures: ['MambaForCausalLM'] }),
      /MambaForCausalLM.*GPT2LMHeadModel.*LlamaForCausalLM.*Qwen3ForCausalLM/,
    ],
    ['of no architecture', 'smollm', inConfig({ architectures: [], model_type: 'toString' }), /toString/],
    ['with quantised weights', 'smollm', inConfig({ quantization_config: { quant_method: 'gptq' } }), /gptq/],
    ['without a width in its config', 'smollm', inConfig({ hidden_size: undefined }), /config\.json.*hidden_size/s],
    ['with layers without end', 'smollm', inConfig({ num_hidden_layers: 1e9 }), /num_hidden_layers/],
    ['with an unknown activation', 'gpt2', inConfig({ activation_function: 'mish' }), /activation_function/],
    ['with heads that do not share evenly', 'mistral', inConfig({ num_key_value_heads: 3 }), /4 heads.*3 keys/],
    ['with a width that heads cannot share', 'gpt2', inConfig({ n_head: 5 }), /48.*5 heads/],
    ['with heads of odd width', 'mistral', inConfig({ head_dim: 11 }), /even width.*11/],
    [
      'with unknown rotary positions',
      'llama',
      inConfig({ rope_parameters: { rope_type: 'proportional' } }),
      /proportional.*yarn/,
    ],
    [
      'with too few factors of longrope',
      'phi3-longrope',
      inConfig({ rope_parameters: { rope_type: 'longrope', short_factor: [1, 2], long_factor: [1, 2] } }),
      /longrope has 2 factors/,
    ],
    [
      'that attends both ways',
      'gemma3',
      inConfig({ use_bidirectional_attention: true }),
      /use_bidirectional_attention/,
    ],
    [
      'with pictures beside text',
      'gemma3',
      inConfig({ architectures: ['Gemma3ForConditionalGeneration'] }),
      /Gemma3ForConditionalGeneration.*Gemma3ForCausalLM/,
    ],
    ['with experts', 'granite', inConfig({ architectures: ['GraniteMoeForCausalLM'] }), /GraniteMoeForCausalLM/],
    ['with rotary positions half described', 'llama', inConfig({ rope_parameters: { rope_type: 'llama3' } }), /factor/],
    [
      'with a tensor of another shape',
      'mistral',
      inConfig({ intermediate_size: 81 }),
      /mlp\.\w+.*\[80, 48\].*\[81, 48\]/,
    ],
    [
      'with a tensor that is missing',
      'smollm',
      (folder) => rewrite(folder, ({ 'model.norm.weight': _, ...rest }) => rest),
      /Tensor model\.norm\.weight is missing in .*model\.safetensors/,
    ],
    ['without the unembedding', 'smollm', inConfig({ tie_word_embeddings: false }), /lm_head\.weight is missing/],
    ['with weights that are cut off', 'smollm', (folder) => cutOff(join(folder, 'model.safetensors')), /not a proper/],
    ['without weights', 'smollm', removing('model.safetensors'), /no model\.safetensors/],
    [
      'with pickled weights only',
      'smollm',
      (folder) => renameSync(join(folder, 'model.safetensors'), join(folder, 'pytorch_model.bin')),
      /pytorch_model\.bin.*python -c .*save_pretrained/,
    ],
    ['with a shard that is missing', 'llama', removing(shard), new RegExp(`index.json names the file ${shard}`)],
    ['with a shard that is cut off', 'llama', (folder) => cutOff(join(folder, shard)), new RegExp(`${shard} is not`)],
    ['with an index that is none', 'llama', inIndex({ weight_map: undefined }), /weight_map/],
    [
      'with an index that leads elsewhere',
      'llama',
      inIndex({ weight_map: { a: '../a.safetensors' } }),
      /\.\.\/a\.safe/,
    ],
    ['with an index that is wrong', 'llama', inIndex({ weight_map: { a: shard } }), /tensor a is in model-00001/],
  ])('%s', async (_, name, spoil, reason) => {
    const folder = copyOf(name);
    spoil(folder);
    await expect(openModelFolder(folder)).rejects.toMatchObject({
      code: 'bad_model',
      message: expect.stringMatching(reason),
    });
  });

  it('if it does not exist', async () => {
    const folder = join(temporaryFolder(), 'absent');
    await expect(openModelFolder(folder)).rejects.toMatchObject({
      code: 'unknown_model',
      message: expect.stringContaining(folder),
    });
  });
});

function copyOf(name: string): string {
  const folder = temporaryFolder();
  cpSync(openReference(name).folder, folder, { recursive: true });
  return folder;
}

/** Undefined values leave the file. */
function change(path: string, values: object): void {
  writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, 'utf8')), ...values }));
}

function cutOff(path: string): void {
  writeFileSync(path, readFileSync(path).subarray(0, -100));
}

function rewrite(folder: string, by: (tensors: Record<string, TensorToWrite>) => Record<string, TensorToWrite>): void {
  const path = join(folder, 'model.safetensors');
  const file = openSafetensors(path);
  const tensors = [...file.tensors].map(([name, { shape }]) => {
    return [name, { dtype: 'F32', shape, data: file.float32(name) }] as const;
  });
  file.close();
  writeFileSync(path, encodeSafetensors(by(Object.fromEntries(tensors))));
}

function sha256(...paths: string[]): string {
  const hash = createHash('sha256');
  for (const path of paths) hash.update(readFileSync(path));
  return hash.digest('hex');
}

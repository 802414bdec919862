/** Chooses the files of a model's repository that the lab needs: configuration, tokenizer, and weights in safetensors, in one file or in shards. */

import * as z from 'zod';
import { CuvetteError } from '../../errors.ts';

const NEEDED = ['config.json', 'tokenizer.json'];
const WELCOME = ['tokenizer_config.json', 'generation_config.json', 'special_tokens_map.json'];
const WEIGHTS = 'model.safetensors';
const INDEX = 'model.safetensors.index.json';

const shards = z.object({ weight_map: z.record(z.string(), z.string()) });

export async function chooseModelFiles(
  id: string,
  names: readonly string[],
  read: (name: string) => Promise<string>,
): Promise<string[]> {
  const missing = NEEDED.filter((name) => !names.includes(name));
  if (missing.length > 0) {
    throw new CuvetteError(
      'bad_model',
      `${id} has no ${missing.join(' and no ')}, which the lab needs. ` +
        `Make them in Python: AutoTokenizer.from_pretrained("${id}").save_pretrained(folder), and the same with AutoModelForCausalLM; then give that folder.`,
    );
  }
  return [...NEEDED, ...WELCOME.filter((name) => names.includes(name)), ...(await chooseWeights(id, names, read))];
}

async function chooseWeights(id: string, names: readonly string[], read: (name: string) => Promise<string>) {
  if (names.includes(WEIGHTS)) return [WEIGHTS];
  if (!names.includes(INDEX)) {
    throw new CuvetteError(
      'bad_model',
      `${id} has no ${WEIGHTS}: its weights are in another format. ` +
        `Convert them in Python: AutoModelForCausalLM.from_pretrained("${id}").save_pretrained(folder); then give that folder.`,
    );
  }
  const { data } = shards.safeParse(parse(await read(INDEX)));
  const files = [...new Set(Object.values(data?.weight_map ?? {}))];
  const lost = files.find((file) => !names.includes(file));
  if (files.length === 0 || lost !== undefined) {
    throw new CuvetteError(
      'bad_model',
      `${INDEX} of ${id} ${lost === undefined ? 'names no files' : `names ${JSON.stringify(lost)}, which is not there`}. Choose another revision, or another model.`,
    );
  }
  return [INDEX, ...files];
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Tokenizes and detokenizes text as a model's tokenizer.json says, with the special tokens of its post-processor. */

import { join } from 'node:path';
import { Tokenizer as HuggingFaceTokenizer } from '@huggingface/tokenizers';
import { CuvetteError, messageOf } from '../../errors.ts';
import { readJsonObject } from '../formats/json-object.ts';

export interface Tokenizer {
  /** Special tokens are added as the model was trained with them, unless `special` is false. */
  encode(text: string, options?: { special?: boolean }): number[];
  /** Special tokens are left out unless `special` is true. Tokens for single bytes that make no text together are shown as browsers show such bytes, which is not always as transformers does. */
  decode(tokens: readonly number[], options?: { special?: boolean }): string;
}

/** `vocabulary` is the number of the model's embeddings. */
export function openTokenizer(folder: string, vocabulary: number): Tokenizer {
  const path = join(folder, 'tokenizer.json');
  const json = readJsonObject(path);
  if (!json) {
    const advice = 'Fetch it with the model, or write it: AutoTokenizer.from_pretrained(…).save_pretrained(folder).';
    throw new CuvetteError('bad_model', `There is no tokenizer.json in ${folder}. ${advice}`);
  }
  const tokenizer = make(path, json, readJsonObject(join(folder, 'tokenizer_config.json')) ?? {});

  return {
    encode(text, { special = true } = {}) {
      const ids = tokenizer.encode(text, { add_special_tokens: special }).ids.filter((id) => id !== undefined);
      const outside = ids.find((id) => id >= vocabulary);
      if (outside === undefined) return ids;
      const token = `token ${outside} (${tokenizer.id_to_token(outside)})`;
      const message = `${path} makes ${token}, and the model has embeddings for ${vocabulary} tokens only.`;
      throw new CuvetteError('bad_model', `${message} Use the tokenizer that belongs to the model.`);
    },
    decode(tokens, { special = false } = {}) {
      const known = tokens.filter((token) => tokenizer.id_to_token(token) !== undefined);
      if (known.length === 0) return '';
      return tokenizer.decode(known, { skip_special_tokens: !special, clean_up_tokenization_spaces: false });
    },
  };
}

/** What is used of the library, whose own types TypeScript cannot follow from an ES module. */
interface Backend {
  /** Characters that the tokenizer has no token for, not even an unknown one, are undefined. */
  encode(text: string, options: { add_special_tokens: boolean }): { ids: (number | undefined)[] };
  decode(tokens: number[], options: { skip_special_tokens: boolean; clean_up_tokenization_spaces: boolean }): string;
  id_to_token(id: number): string | undefined;
}

function make(path: string, json: object, config: object): Backend {
  try {
    return new HuggingFaceTokenizer(json, config);
  } catch (error) {
    throw new CuvetteError('bad_model', `${path} is no tokenizer that Cuvette can use: ${messageOf(error)}.`, {
      cause: error,
    });
  }
}

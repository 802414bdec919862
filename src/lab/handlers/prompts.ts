/** Checks and tokenizes prompts of callers, and splits them into batches for the engine. */

import { CuvetteError } from '../../errors.ts';
import type { LabResources } from './resources.ts';

/** Tokens that go to the engine at once, so that many prompts take no more memory than some. */
const MOST_TOKENS = 4096;

export function promptsOf({
  prompt,
  prompts,
}: {
  prompt?: string | undefined;
  prompts?: string[] | undefined;
}): string[] {
  if (prompt !== undefined && prompts !== undefined)
    throw new CuvetteError('invalid_input', 'There are both prompt and prompts. Give one of them.');
  if (prompt !== undefined) return [prompt];
  if (prompts !== undefined) return prompts;
  throw new CuvetteError('invalid_input', 'There is no prompt. Give prompt, or prompts for several.');
}

export async function tokenizePrompts(
  { engine, model }: LabResources,
  prompts: readonly string[],
): Promise<number[][]> {
  const tokens = await engine.tokenize(prompts);
  tokens.forEach((one, i) => {
    if (one.length === 0)
      throw new CuvetteError('invalid_input', `Prompt ${i} has no tokens. Give it some text, or leave it out.`);
    if (one.length > model.context)
      throw new CuvetteError(
        'invalid_input',
        `Prompt ${i} has ${one.length} tokens, and ${model.id} takes ${model.context} at most. Shorten it.`,
      );
  });
  return tokens;
}

/** Runs of row numbers that go to the engine together. */
export function* batchesOf(tokens: readonly (readonly number[])[], mostTokens = MOST_TOKENS): Generator<number[]> {
  let batch: number[] = [];
  let size = 0;
  for (const [row, { length }] of tokens.entries()) {
    if (batch.length > 0 && size + length > mostTokens) {
      yield batch;
      batch = [];
      size = 0;
    }
    batch.push(row);
    size += length;
  }
  if (batch.length > 0) yield batch;
}

/** What is given for each prompt must be there for each of them. */
export function checkLength(
  name: string,
  values: readonly unknown[] | undefined,
  prompts: number,
  of = 'prompts',
): void {
  if (values === undefined || values.length === prompts) return;
  throw new CuvetteError(
    'invalid_input',
    `There are ${values.length} ${name} for ${prompts} ${of}. Give one for each, in the same order.`,
  );
}

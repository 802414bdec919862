/** Defines what loaders of all SAE formats return, and reads the settings beside the weights. */

import * as z from 'zod';
import { CuvetteError } from '../../errors.ts';
import type { Sae } from '../core/sae.ts';
import { readJsonObject } from '../formats/json-object.ts';
import type { TensorFile } from '../formats/tensor-file.ts';
import type { SaeWeights } from './weights.ts';

/** All that a file itself knows. */
export type SaeContent = Omit<Sae, 'id' | 'source' | 'hookPoint' | 'descriptions'>;

/** Takes a file or folder that was recognised as its format. */
export type SaeLoader = (path: string, signal?: AbortSignal) => Promise<SaeContent>;

/**
 * Refuses a file with tensors or settings that its loader does not read. They would change the features, so that a file is read whole or not at all.
 * `unused` are those which no feature depends on, such as statistics of the training.
 */
export function refuseUnknownTensors(
  file: TensorFile & { values?: ReadonlyMap<string, unknown> },
  known: { format: string; read: readonly (string | undefined)[]; unused?: readonly string[] },
): void {
  const names = new Set([...known.read, ...(known.unused ?? [])]);
  const there = [...file.tensors.keys(), ...(file.values?.keys() ?? [])];
  const unknown = there.filter((name) => !names.has(name)).sort();
  if (unknown.length === 0) return;
  const expected = [...names].filter((name) => name !== undefined);
  throw new CuvetteError(
    'bad_model',
    `${file.path} was taken for ${known.format}, and has what that does not: ${listNames(unknown)}. Features would be wrong without it, so nothing is read. ` +
      `Known there: ${listNames(expected)}. Its settings are of another kind than its tensors, or it is of a kind that Cuvette does not know.`,
  );
}

/** For messages: some of many names. */
export function listNames(names: readonly string[]): string {
  return names.length <= 20 ? names.join(', ') : `${names.slice(0, 20).join(', ')} and ${names.length - 20} more`;
}

/** The weights' part of the content. What is as wide as the input is an autoencoder, unless `writes` says that it is of another place. */
export function contentOf(
  weights: SaeWeights,
  writes: string[] | undefined,
): Pick<SaeContent, 'width' | 'features' | 'encoder' | 'encoderBias' | 'decoder' | 'decoderBias' | 'output'> {
  const { outputWidth, ...rest } = weights;
  if (writes === undefined && outputWidth === weights.width) return rest;
  return { ...rest, output: { width: outputWidth, hookNames: writes ?? [] } };
}

export async function withFile<File extends TensorFile, Result>(
  file: File,
  use: (file: File) => Promise<Result>,
): Promise<Result> {
  try {
    return await use(file);
  } finally {
    file.close();
  }
}

/** Settings that have to be there and of the right form. */
export function readSettings<Schema extends z.ZodType>(path: string, schema: Schema): z.infer<Schema> {
  const parsed = schema.safeParse(readJsonObject(path) ?? {});
  if (parsed.success) return parsed.data;
  throw new CuvetteError('bad_model', `${path} cannot be used: ${z.prettifyError(parsed.error)}.`);
}

export function unsupported(path: string, what: string, supported: string): CuvetteError {
  return new CuvetteError('bad_model', `${path} has ${what}, which Cuvette does not compute. It knows ${supported}.`);
}

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

/** Owns how config.json and its neighbours are read, and what the families' have in common. */

import { existsSync, readFileSync } from 'node:fs';
import { z } from 'zod';
import { CuvetteError, messageOf } from '../../errors.ts';
import type { Activation } from './spec.ts';

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

/** Undefined if the file is not there. */
export function readJsonObject(path: string): Record<string, unknown> | undefined {
  if (!existsSync(path)) return undefined;
  try {
    return z.record(z.string(), z.unknown()).parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch (error) {
    const reason = error instanceof z.ZodError ? 'it is not an object' : messageOf(error);
    throw new CuvetteError('bad_model', `${path} cannot be read: ${reason}. It must be JSON; fetch it again.`, {
      cause: error,
    });
  }
}

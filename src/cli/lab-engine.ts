/** Which engine a lab is to use, from the flags of a command. */

import * as z from 'zod';
import { CuvetteError } from '../errors.ts';
import type { LocalLabOptions } from '../lab/local/local-lab.ts';
import { withoutSecrets } from '../sessions/variables.ts';

/** For `parseFlags`. */
export const ENGINE_FLAGS = {
  engine: { type: 'string', default: 'embedded' },
  dtype: { type: 'string' },
  device: { type: 'string' },
  quantization: { type: 'string' },
  'torch-python': { type: 'string' },
} as const;

const TORCH_ONLY = ['dtype', 'device', 'quantization', 'torch-python'] as const;

const flagsSchema = z.object({
  engine: z.enum(['embedded', 'torch']),
  dtype: z.enum(['auto', 'float32', 'bfloat16', 'float16']).optional(),
  device: z.string().min(1).optional(),
  quantization: z.enum(['8bit', '4bit']).optional(),
  'torch-python': z.string().min(1).optional(),
});

export function engineFrom(values: Record<string, unknown>, runtime: string): Pick<LocalLabOptions, 'torch'> {
  const parsed = flagsSchema.safeParse(values);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new CuvetteError('invalid_input', `--${String(issue?.path[0])}: ${issue?.message}. Run: cuvette help`);
  }
  const { engine, 'torch-python': python, ...rest } = parsed.data;
  if (engine === 'torch') return { torch: { ...definedOf({ ...rest, python }), runtime, env: withoutSecrets() } };
  const extra = TORCH_ONLY.find((name) => parsed.data[name] !== undefined);
  if (extra) throw new CuvetteError('invalid_input', `--${extra} is for --engine torch.`);
  return {};
}

type Defined<T> = { [Key in keyof T]?: Exclude<T[Key], undefined> };

function definedOf<T extends object>(values: T): Defined<T> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Defined<T>;
}

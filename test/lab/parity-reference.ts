/** Opens the models that scripts/lab/make-parity.py made for every architecture, with what transformers computes of them. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { openSafetensors } from '../../src/lab/formats/safetensors.ts';

const FOLDER = fileURLToPath(new URL('fixtures/parity', import.meta.url));

export const PARITY_MODELS = readdirSync(FOLDER, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map((entry) => entry.name);

const positions = z.union([z.array(z.number()), z.object({ from: z.number() })]);
const place = z.enum(['resid_pre', 'attn_out', 'mlp_out', 'resid_post']);
const where = { layer: z.number(), place, positions };
const tokens = z.array(z.number());
const Reference = z.object({
  prompt: z.string(),
  tokens,
  longTokens: tokens,
  interventions: z.array(
    z.discriminatedUnion('kind', [
      z.object({ kind: z.enum(['add', 'set', 'project-out']), ...where }),
      z.object({ kind: z.literal('interchange'), part: z.enum(['along', 'rest']), ...where }),
    ]),
  ),
  generation: z.object({
    maxNewTokens: z.number(),
    plain: tokens,
    steered: tokens,
    layer: z.number(),
    positions,
    factor: z.number(),
  }),
  tokenizer: z.object({
    texts: z.array(
      z.object({ text: z.string(), tokens, plainTokens: tokens, decoded: z.string(), decodedWithSpecial: z.string() }),
    ),
    single: z.array(z.string()),
  }),
});

export interface ParityReference extends z.infer<typeof Reference> {
  folder: string;
  array(name: string): Float32Array;
}

export function openReference(model: string): ParityReference {
  const folder = join(FOLDER, model);
  const described = Reference.parse(JSON.parse(readFileSync(join(folder, 'reference.json'), 'utf8')));
  return { ...described, folder, array };

  function array(name: string): Float32Array {
    const file = openSafetensors(join(folder, 'reference.safetensors'));
    const values = file.float32(name);
    file.close();
    return values;
  }
}

export function parityFile(name: string): unknown {
  return JSON.parse(readFileSync(join(FOLDER, name), 'utf8'));
}

export function largestDifference(a: ArrayLike<number>, b: ArrayLike<number>): number {
  if (a.length !== b.length) throw new Error(`There are ${a.length} numbers, and ${b.length} to compare them with.`);
  let largest = 0;
  for (let i = 0; i < a.length; i++) {
    const difference = Math.abs((a[i] ?? Number.NaN) - (b[i] ?? Number.NaN));
    if (!(difference <= largest)) largest = difference;
  }
  return largest;
}

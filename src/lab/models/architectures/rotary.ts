/** Computes the inverse frequencies of the rotary embedding for each kind of scaling, rounded to 32 bits at each step, as transformers does. */

import { z } from 'zod';
import { CuvetteError } from '../../../errors.ts';
import { missing } from '../../core/missing.ts';
import type { ModelSpec, RotaryPositions } from './model-spec.ts';

/** What config.json says of rotary positions: transformers 5 writes `rope_parameters`, earlier ones `rope_theta` and `rope_scaling`. */
export const RotaryConfig = z.object({
  max_position_embeddings: z.number().int().positive(),
  original_max_position_embeddings: z.number().positive().nullish(),
  rope_theta: z.number().positive().nullish(),
  partial_rotary_factor: z.number().positive().max(1).nullish(),
  rope_scaling: z.record(z.string(), z.unknown()).nullish(),
  rope_parameters: z.record(z.string(), z.unknown()).nullish(),
});

/** What transformers takes where config.json has no rope_theta. */
const USUAL_BASE = 10_000;

/** `rotated` is how many of a head's numbers are rotated. */
export function rotaryPositions(config: z.infer<typeof RotaryConfig>, rotated: number): RotaryPositions {
  const given = config.rope_scaling ?? config.rope_parameters ?? {};
  const { rope_theta, original_max_position_embeddings } = Common.parse(given);
  const base = rope_theta ?? config.rope_theta ?? USUAL_BASE;
  const trained =
    config.original_max_position_embeddings ?? original_max_position_embeddings ?? config.max_position_embeddings;
  const powers = Float64Array.from({ length: Math.ceil(rotated / 2) }, (_, i) =>
    round(base ** round((2 * i) / rotated)),
  );
  const frequencies = powers.map((power) => round(1 / power));

  const scaling = scalingOf(given);
  switch (scaling.rope_type) {
    case 'default':
    // It begins to scale beyond the context, where a model is not run.
    case 'dynamic':
      return rotary(frequencies);
    case 'linear':
      return rotary(frequencies.map((frequency) => frequency / scaling.factor));
    case 'llama3':
      return rotary(frequencies.map(llama3(scaling, trained)));
    case 'yarn': {
      const factor = scaling.factor ?? config.max_position_embeddings / trained;
      const share = yarnShares(scaling, { rotated, base, trained });
      const blend = (frequency: number, i: number) => {
        const stretched = round(1 / round(factor * (powers[i] ?? missing('power', i))));
        return round(stretched * round(1 - share(i))) + round(frequency * share(i));
      };
      return rotary(frequencies.map(blend), yarnScale(scaling, factor));
    }
    case 'longrope': {
      const factor = scaling.factor ?? config.max_position_embeddings / trained;
      const stretched = (factors: number[]) => {
        checkFactors(factors, powers.length);
        return powers.map((power, i) => round(1 / round(round(factors[i] ?? missing('factor', i)) * power)));
      };
      const long = { beyond: trained, inverseFrequencies: stretched(scaling.long_factor) };
      return { ...rotary(stretched(scaling.short_factor), longScale(scaling, factor, trained)), long };
    }
  }
}

/** How many of a head's numbers are rotated: a share of them that config.json names, or the usual one. */
export function rotatedOf(config: z.infer<typeof RotaryConfig>, headWidth: number, usualShare: number): number {
  const { partial_rotary_factor: share } = Common.parse(config.rope_scaling ?? config.rope_parameters ?? {});
  return Math.floor(headWidth * (share ?? config.partial_rotary_factor ?? usualShare));
}

/** Whether a text of so many tokens has the frequencies for long texts, so that nothing of it can be shared with a shorter one. */
export function isLongText(
  { positions, windowPositions }: Pick<ModelSpec, 'positions' | 'windowPositions'>,
  length: number,
): boolean {
  const rotary = [positions, windowPositions];
  return rotary.some((one) => one?.kind === 'rotary' && one.long !== undefined && length > one.long.beyond);
}

const Common = z.object({
  partial_rotary_factor: z.number().positive().max(1).nullish(),
  rope_theta: z.number().positive().nullish(),
  original_max_position_embeddings: z.number().positive().nullish(),
});

const factor = z.number().positive();
const Llama3 = z.object({
  rope_type: z.literal('llama3'),
  factor,
  low_freq_factor: z.number(),
  high_freq_factor: z.number(),
});
const Yarn = z.object({
  rope_type: z.literal('yarn'),
  factor: factor.nullish(),
  attention_factor: z.number().nullish(),
  mscale: z.number().nullish(),
  mscale_all_dim: z.number().nullish(),
  beta_fast: z.number().nullish(),
  beta_slow: z.number().nullish(),
  truncate: z.boolean().default(true),
});
const Longrope = z.object({
  rope_type: z.literal('longrope'),
  factor: factor.nullish(),
  attention_factor: z.number().nullish(),
  short_factor: z.array(factor),
  long_factor: z.array(factor),
});
const Scaling = z.discriminatedUnion('rope_type', [
  z.object({ rope_type: z.literal('default') }),
  z.object({ rope_type: z.literal('dynamic') }),
  z.object({ rope_type: z.literal('linear'), factor }),
  Llama3,
  Yarn,
  Longrope,
]);
const KINDS = ['default', 'dynamic', 'linear', 'llama3', 'yarn', 'longrope'];

function scalingOf(given: Record<string, unknown>): z.infer<typeof Scaling> {
  const kind = given.rope_type ?? given.type ?? 'default';
  if (!KINDS.some((known) => known === kind)) {
    const supported = `It can compute ${KINDS.join(', ')}.`;
    throw new CuvetteError('bad_model', `Cuvette cannot compute rotary positions of the kind ${kind}. ${supported}`);
  }
  return Scaling.parse({ ...given, rope_type: kind });
}

const round = Math.fround;

function rotary(inverseFrequencies: Float64Array, scale = 1): RotaryPositions {
  return { kind: 'rotary', inverseFrequencies: inverseFrequencies.map(round), scale };
}

/** Long waves are stretched by the factor, short ones are left, and those between are blended. */
function llama3(scaling: z.infer<typeof Llama3>, trained: number): (frequency: number) => number {
  const { factor, low_freq_factor: low, high_freq_factor: high } = scaling;
  return (frequency) => {
    const wave = round(round(1 / frequency) * round(2 * Math.PI));
    if (wave > trained / low) return frequency / factor;
    if (wave < trained / high) return frequency;
    const share = round(round(round(round(1 / wave) * trained) - low) / (high - low));
    return round(round(round(1 - share) * frequency) / factor) + round(share * frequency);
  };
}

/** The share of each frequency, by its index, that is not stretched: from 1 to 0. */
function yarnShares(
  scaling: z.infer<typeof Yarn>,
  { rotated, base, trained }: { rotated: number; base: number; trained: number },
): (i: number) => number {
  const numberOf = (turns: number) => (rotated * Math.log(trained / (turns * 2 * Math.PI))) / (2 * Math.log(base));
  const first = numberOf(scaling.beta_fast || 32);
  const last = numberOf(scaling.beta_slow || 1);
  const low = Math.max(scaling.truncate ? Math.floor(first) : first, 0);
  const high = Math.min(scaling.truncate ? Math.ceil(last) : last, rotated - 1);
  const span = high === low ? 0.001 : high - low;
  return (i) => round(1 - Math.min(Math.max(round(round(i - low) / round(span)), 0), 1));
}

function yarnScale(scaling: z.infer<typeof Yarn>, factor: number): number {
  const grown = (by: number) => (factor <= 1 ? 1 : 0.1 * by * Math.log(factor) + 1);
  if (scaling.attention_factor != null) return scaling.attention_factor;
  if (scaling.mscale && scaling.mscale_all_dim) return grown(scaling.mscale) / grown(scaling.mscale_all_dim);
  return grown(1);
}

function checkFactors(factors: readonly number[], wanted: number): void {
  if (factors.length === wanted) return;
  const message = `longrope has ${factors.length} factors, and ${wanted} frequencies are rotated.`;
  throw new CuvetteError('bad_model', message);
}

function longScale(scaling: z.infer<typeof Longrope>, factor: number, trained: number): number {
  if (scaling.attention_factor != null) return scaling.attention_factor;
  return factor <= 1 ? 1 : Math.sqrt(1 + Math.log(factor) / Math.log(trained));
}

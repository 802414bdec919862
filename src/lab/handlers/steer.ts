/** Answers `steer`: adds a direction from the last prompt token on, and compares the effect with that of random directions of the same length. */

import { CuvetteError } from '../../errors.ts';
import { logitsOf, readSite } from '../causality/readings.ts';
import type { HookPoint, Variant } from '../core/engine.ts';
import type { LabContext } from '../core/lab.ts';
import { hashOf } from '../core/manifest.ts';
import { missing } from '../core/missing.ts';
import { steer } from '../primitives/steer.ts';
import { shareOf } from '../statistics/proportion.ts';
import { createRandom } from '../statistics/random.ts';
import { mean } from '../statistics/summary.ts';
import { norm, scaled } from '../statistics/vectors.ts';
import { controlTokensFor } from './control-tokens.ts';
import { type Direction, findDirection } from './directions.ts';
import { defineHandler } from './handler.ts';
import { layerOf } from './layers.ts';
import { measureNeutralDamage } from './neutral-text.ts';
import { promptsOf, tokenizePrompts } from './prompts.ts';
import { type LabResources, recorded } from './resources.ts';
import { type SteeringEffect, steeringEffect } from './steering-effect.ts';

/** Logits in memory at a time. */
const MOST_LOGITS = 1 << 24;
const SIGNIFICANT = 0.05;

interface Steering {
  tokens: number[][];
  point: HookPoint;
  vector: Float32Array;
}

export const steerHandler = defineHandler(steer, async (resources, args, context) => {
  const prompts = promptsOf(args);
  const layer = layerOf(resources, args.layer);
  const { point, name, shown } = layer;
  const direction = await findDirection(resources, args.direction_id, layer, context);
  const tokens = await tokenizePrompts(resources, prompts);
  const notes: string[] = [];

  const residual = await meanNorm(resources, tokens, point, context);
  const added = lengthOf(args, direction, residual);
  const steering: Steering = { tokens, point, vector: scaled(direction.vector, added / direction.length) };
  const controls = await controlTokensFor(
    resources.engine,
    args.control_tokens,
    await firstLogits(resources, tokens, context),
    notes,
  );
  const random = createRandom(args.seed, 'random directions for steering');
  const others = Array.from({ length: args.n_random }, () => scaled(random.direction(direction.vector.length), added));
  const effects = await effectsOf(resources, steering, others, controls, context);

  context.progress('Generating');
  const generations = await generate(resources, steering, args.max_new_tokens, context);
  const text = { point, vector: steering.vector, prompts: args.neutral_prompts, seed: args.seed };
  const neutral = await measureNeutralDamage(resources, text, context);
  const perPrompt = await Promise.all(
    prompts.map(async (prompt, i) => ({ prompt, ...(await shownEffect(resources, effects[i], generations[i])) })),
  );
  const [first] = perPrompt;
  if (!first) throw new Error('There is no prompt.');
  const summary = summaryOf(effects);
  const dose = {
    absolute: added / direction.length,
    swing: direction.swing === undefined ? null : added / direction.swing,
    norm: added / residual,
  };
  const { prompt: _, ...told } = first;
  const result = { ...told, alpha: dose, ...summary, neutral_text: neutral };
  const { n_random, max_new_tokens, seed } = args;
  const manifest = await recorded(resources, {
    tool: steer.name,
    inputs: {
      direction: direction.hash,
      point: name,
      added,
      controls,
      max_new_tokens,
      n_random,
      neutral: args.neutral_prompts ?? null,
    },
    outputs: { ...result, perPrompt },
    data: hashOf(prompts),
    seed,
  });
  return {
    direction_id: args.direction_id,
    layer: shown,
    n_prompts: prompts.length,
    ...result,
    per_prompt: prompts.length > 1 ? perPrompt : [],
    notes,
    manifest_sha256: manifest,
  };
});

/** The norm of the added vector; negative if it points against the direction. */
function lengthOf(
  { alpha, alpha_unit }: { alpha: number; alpha_unit: string },
  { length, swing }: Direction,
  residual: number,
): number {
  if (alpha === 0 || !Number.isFinite(alpha))
    throw new CuvetteError('invalid_input', `With alpha ${alpha} nothing is steered. Give another number.`);
  if (alpha_unit === 'absolute') return alpha * length;
  if (alpha_unit === 'norm') return alpha * residual;
  if (swing === undefined)
    throw new CuvetteError(
      'invalid_input',
      'The swing is known of probes that were trained in this lab only. Give alpha_unit: norm, or absolute.',
    );
  return alpha * swing;
}

async function meanNorm(
  { engine }: LabResources,
  tokens: number[][],
  point: HookPoint,
  { signal }: LabContext,
): Promise<number> {
  const rows = await readSite({ engine, signal, advance: () => {} }, tokens, { ...point, position: -1 });
  const width = rows.length / tokens.length;
  return mean(tokens.map((_, row) => norm(rows.subarray(row * width, (row + 1) * width))));
}

async function firstLogits(
  { engine, model }: LabResources,
  tokens: number[][],
  { signal }: LabContext,
): Promise<Float32Array> {
  const results = await engine.run({ prompts: tokens.slice(0, 1), logits: { positions: [-1] } }, signal);
  return logitsOf(results, 0, model.vocabulary);
}

interface PromptEffects {
  own: SteeringEffect;
  random: SteeringEffect[];
}

async function effectsOf(
  { engine, model }: LabResources,
  { tokens, point, vector }: Steering,
  others: Float32Array[],
  controls: number[],
  { signal, progress }: LabContext,
): Promise<PromptEffects[]> {
  const atOnce = Math.max(1, Math.floor(MOST_LOGITS / (model.vocabulary * (others.length + 2))));
  const effects: PromptEffects[] = [];
  for (let from = 0; from < tokens.length; from += atOnce) {
    const prompts = tokens.slice(from, from + atOnce);
    const variants: Variant[] = prompts.flatMap((_, prompt) => [
      { prompt, interventions: [] },
      ...[vector, ...others].map((one) => ({ prompt, interventions: [adding(point, one, [-1])] })),
    ]);
    const results = await engine.run({ prompts, variants, logits: { positions: [-1] } }, signal);
    const logits = variants.map((_, i) => checkedLogits(logitsOf(results, i, model.vocabulary)));
    for (let at = 0; at < logits.length; at += others.length + 2) {
      const [base = missing('logits of variant', at), ...steered] = logits.slice(at, at + others.length + 2);
      const [own = missing('effect on prompt', effects.length), ...random] = steered.map((one) =>
        steeringEffect(base, one, controls),
      );
      effects.push({ own, random });
    }
    if (effects.length < tokens.length) progress(`Steered ${effects.length} of ${tokens.length} prompts`);
  }
  return effects;
}

function adding(point: HookPoint, vector: Float32Array, positions: readonly number[] | { from: number }) {
  return { point, positions, kind: 'add' as const, vector };
}

/** Rejects numbers that are not finite, which would count as no effect. */
function checkedLogits(logits: Float32Array): Float32Array {
  if (logits.every(Number.isFinite)) return logits;
  throw new CuvetteError(
    'invalid_input',
    'At this alpha the model gives numbers that are not finite. Choose a smaller one; alpha_unit: norm is relative to the residual stream.',
  );
}

async function generate(
  { engine }: LabResources,
  { tokens, point, vector }: Steering,
  maxNewTokens: number,
  { signal }: LabContext,
): Promise<{ base: string; steered: string }[]> {
  if (maxNewTokens === 0) return tokens.map(() => ({ base: '', steered: '' }));
  const variants = tokens.flatMap((_, prompt) => [
    { prompt, interventions: [] },
    { prompt, interventions: [adding(point, vector, { from: -1 })] },
  ]);
  const generated = await engine.generate({ prompts: tokens, variants, maxNewTokens }, signal);
  const texts = await Promise.all(generated.map((one) => engine.detokenize(one)));
  const textOf = (variant: number) => texts[variant] ?? missing('text of variant', variant);
  return tokens.map((_, i) => ({ base: textOf(2 * i), steered: textOf(2 * i + 1) }));
}

async function shownEffect(
  { engine }: LabResources,
  effects: PromptEffects | undefined,
  generation: { base: string; steered: string } | undefined,
) {
  if (!effects || !generation) throw new Error('A prompt has no effect.');
  const { own, random } = effects;
  return {
    target_token: await engine.detokenize([own.target], { special: true }),
    target_token_id: own.target,
    normalization: {
      delta_raw_logit_target: own.rawTarget,
      delta_raw_logit_controls_mean: own.rawControls,
      delta_rel: own.relative,
      delta_logprob_target: own.logProbability,
      n_controls: own.controls,
      delta_corrected: own.corrected,
      temperature: own.temperature,
      epiphenomenal_flag: isNoMoreThanRandom(
        own.corrected,
        random.map(({ corrected }) => corrected),
      ),
    },
    base_generation: generation.base,
    steered_generation: generation.steered,
    flipped: generation.base !== generation.steered || own.isFlipped,
    next_token_flipped: own.isFlipped,
  };
}

function summaryOf(effects: PromptEffects[]) {
  const meanOf = (values: (effect: PromptEffects) => number) => mean(effects.map(values));
  const flips = shareOf(effects.filter(({ own }) => own.isFlipped).length, effects.length);
  const [first = missing('effect on prompt', 0)] = effects;
  const count = first.random.length;
  const corrected = meanOf(({ own }) => own.corrected);
  const random = first.random.map((_, r) => {
    const each = effects.map((effect) => effect.random[r] ?? missing('effect of random direction', r));
    return {
      relative: mean(each.map(({ relative }) => relative)),
      corrected: mean(each.map((one) => one.corrected)),
      flips: mean(each.map(({ isFlipped }) => (isFlipped ? 1 : 0))),
    };
  });
  return {
    mean_delta_rel: meanOf(({ own }) => own.relative),
    mean_delta_corrected: corrected,
    flip_rate: flips.rate,
    flip_rate_interval: [flips.interval.low, flips.interval.high],
    random_directions:
      count === 0
        ? null
        : {
            n: count,
            mean_abs_delta_rel: mean(random.map(({ relative }) => Math.abs(relative))),
            mean_abs_delta_corrected: mean(random.map((one) => Math.abs(one.corrected))),
            flip_rate: mean(random.map((one) => one.flips)),
            p: pValue(
              corrected,
              random.map((one) => one.corrected),
            ),
          },
  };
}

/** False if there are no random directions to compare with. */
function isNoMoreThanRandom(value: number, random: number[]): boolean {
  return random.length > 0 && pValue(value, random) >= SIGNIFICANT;
}

function pValue(value: number, random: number[]): number {
  return (1 + random.filter((one) => Math.abs(one) >= Math.abs(value)).length) / (random.length + 1);
}

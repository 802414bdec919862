/** Measures what steering does to neutral text, at every position but the first. */

import { measureNeutralText, PLAIN_SENTENCES } from '../causality/neutral-text.ts';
import type { HookPoint } from '../core/engine.ts';
import type { LabContext } from '../core/lab.ts';
import { norm, scaled } from '../statistics/vectors.ts';
import { tokenizePrompts } from './prompts.ts';
import type { LabResources } from './resources.ts';

/** The largest harm to neutral text that counts as none; the divergence in nats. */
const PERPLEXITY_RATIO = 1.5;
const DIVERGENCE = 0.1;

/** The larger harm of both signs of the vector. */
export async function measureNeutralDamage(
  resources: LabResources,
  steering: { point: HookPoint; vector: Float32Array; prompts: readonly string[] | undefined; seed: number },
  { signal }: LabContext,
) {
  const { point, vector, seed } = steering;
  const tokens = await tokenizePrompts(resources, steering.prompts ?? resources.neutralPrompts ?? PLAIN_SENTENCES);
  const run = { engine: resources.engine, signal, advance: () => {} };
  const length = norm(vector);
  const dose = { absolute: length, swing: 0, norm: 0 };
  const harm = await measureNeutralText(run, tokens, point, scaled(vector, 1 / length), dose, seed);
  return {
    n: harm.prompts,
    perplexity_ratio: harm.perplexityRatio,
    kl: harm.divergence,
    random_perplexity_ratio: harm.random.perplexityRatio,
    random_kl: harm.random.divergence,
    is_intact: harm.perplexityRatio <= PERPLEXITY_RATIO && harm.divergence <= DIVERGENCE,
  };
}

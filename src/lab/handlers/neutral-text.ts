/** What steering does to text that it should leave alone, by the guard of the protocol. */

import { measureNeutral, PLAIN_SENTENCES } from '../causality/neutral.ts';
import type { HookPoint } from '../core/engine.ts';
import type { LabContext } from '../core/lab.ts';
import { norm, scaled } from '../statistics/vectors.ts';
import { tokenizePrompts } from './prompts.ts';
import type { LabResources } from './resources.ts';

/** As in the protocol. */
const LARGEST_RATIO = 1.5;
const LARGEST_DIVERGENCE = 0.1;

/** Both signs of the vector count, whichever does more. */
export async function neutralDamage(
  bench: LabResources,
  steering: { point: HookPoint; vector: Float32Array; prompts: readonly string[] | undefined; seed: number },
  { signal }: LabContext,
) {
  const { point, vector, seed } = steering;
  const tokens = await tokenizePrompts(bench, steering.prompts ?? bench.neutralPrompts ?? PLAIN_SENTENCES);
  const run = { engine: bench.engine, signal, advance: () => {} };
  const length = norm(vector);
  const dose = { absolute: length, swing: 0, norm: 0 };
  const site = { ...point, position: -1 };
  const harm = await measureNeutral(run, tokens, site, scaled(vector, 1 / length), dose, seed);
  return {
    n: harm.prompts,
    perplexity_ratio: harm.perplexityRatio,
    kl: harm.divergence,
    random_perplexity_ratio: harm.random.perplexityRatio,
    random_kl: harm.random.divergence,
    is_intact: harm.perplexityRatio <= LARGEST_RATIO && harm.divergence <= LARGEST_DIVERGENCE,
  };
}

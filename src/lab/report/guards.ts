/** Lists the guards of a run, each with its limit and whether it passes. */

import type { Evidence } from '../causality/evidence.ts';
import { DIVERGENCE, ON_MANIFOLD, PERPLEXITY_RATIO } from '../causality/thresholds.ts';
import { formatNumber } from './numbers.ts';

export interface Guard {
  name: string;
  value: string;
  limit: string;
  passes: boolean;
}

export function guardsOf({ guards, naming, temperature }: Evidence): Guard[] {
  const { onManifold, neutral } = guards;
  const found: Guard[] = [
    {
      name: 'The direction lies where activations vary',
      value: formatNumber(onManifold.value),
      limit: `at least ${ON_MANIFOLD}`,
      passes: onManifold.value >= ON_MANIFOLD,
    },
    {
      name: 'Perplexity of neutral text, as a ratio',
      value: formatNumber(neutral.perplexityRatio),
      limit: `at most ${PERPLEXITY_RATIO}`,
      passes: neutral.perplexityRatio <= PERPLEXITY_RATIO,
    },
    {
      name: 'Divergence on neutral text, in nats',
      value: formatNumber(neutral.divergence),
      limit: `at most ${DIVERGENCE}`,
      passes: neutral.divergence <= DIVERGENCE,
    },
    {
      name: 'Runs in which the scale of the logits cannot be told',
      value: String(temperature.clamped),
      limit: 'none',
      passes: temperature.clamped === 0,
    },
  ];
  if (!naming.required) return found;
  return [
    ...found,
    {
      name: 'The feature has a name',
      value: naming.name ?? 'none',
      limit: 'required for causal',
      passes: naming.name !== undefined,
    },
  ];
}

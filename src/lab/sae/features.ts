/** Ranks the features of a row, and adds their descriptions. */

import type { Sae } from '../core/sae.ts';

export interface ActiveFeature {
  feature: number;
  activation: number;
  description?: string;
}

/** The strongest active features first. `row` has one number for each feature. */
export function strongestFeatures(sae: Sae, row: Float32Array, most: number): ActiveFeature[] {
  const active: { feature: number; activation: number }[] = [];
  row.forEach((activation, feature) => {
    if (activation > 0) active.push({ feature, activation });
  });
  return active
    .sort((a, b) => b.activation - a.activation || a.feature - b.feature)
    .slice(0, most)
    .map((one) => ({ ...one, ...describe(sae, one.feature) }));
}

function describe(sae: Sae, feature: number): { description?: string } {
  const description = sae.descriptions?.get(feature);
  return description === undefined ? {} : { description };
}

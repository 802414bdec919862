/** Chooses a counterfactual partner for each row: a row of another label, from the same pair or template where there is one. */

import type { Random } from '../statistics/random.ts';
import { rowAt } from './dataset.ts';
import type { Evidence } from './evidence.ts';
import type { DatasetRow } from './question.ts';

/** `partners` are indices into `chosen`; `kinds` counts how each was chosen. */
export function choosePartners(
  dataset: readonly DatasetRow[],
  chosen: readonly number[],
  random: Random,
): { partners: number[]; kinds: Evidence['interchange']['partners'] } {
  const rows = chosen.map((row) => rowAt(dataset, row));
  const kinds = { pair: 0, template: 0, any: 0 };
  const places = rows.map((row) => {
    const others = rows.flatMap((other, index) => (other.label === row.label ? [] : [{ other, place: index }]));
    const pair = others.filter(({ other }) => row.pair !== undefined && other.pair === row.pair);
    const template = others.filter(({ other }) => row.template !== undefined && other.template === row.template);
    const [kind, candidates] =
      pair.length > 0
        ? (['pair', pair] as const)
        : template.length > 0
          ? (['template', template] as const)
          : (['any', others] as const);
    kinds[kind]++;
    return random.choose(candidates).place;
  });
  return { partners: places, kinds };
}

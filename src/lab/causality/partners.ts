/** Which row each row is compared with: its counterfactual. */

import type { Random } from '../statistics/random.ts';
import { rowAt } from './dataset.ts';
import type { DatasetRow, Evidence } from './evidence.ts';

/** Places of the partners in the list of the chosen: of the same pair where there is one, else of the other label, best of the same template. */
export function choosePartners(
  dataset: readonly DatasetRow[],
  chosen: readonly number[],
  random: Random,
): { places: number[]; kinds: Evidence['interchange']['partners'] } {
  const rows = chosen.map((row) => rowAt(dataset, row));
  const kinds = { pair: 0, template: 0, any: 0 };
  const places = rows.map((row) => {
    const others = rows.flatMap((other, place) => (other.label === row.label ? [] : [{ other, place }]));
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
  return { places, kinds };
}

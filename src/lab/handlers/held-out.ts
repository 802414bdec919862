/** Splits rows into those that a probe is trained on and those that it is tested on. Rows of a pair or template stay together. */

import { CuvetteError } from '../../errors.ts';
import { classesOf, groupsBy, labelsOf, rowAt } from '../causality/dataset.ts';
import type { DatasetRow } from '../causality/question.ts';
import type { Random } from '../statistics/random.ts';

export interface HeldOut {
  by: 'pair' | 'template' | 'row' | 'none';
  trained: number[];
  heldOut: number[];
}

/** Splits by pair, by template or by row: the first way that leaves every class on both sides. */
export function holdOut(dataset: readonly DatasetRow[], share: number, random: Random): HeldOut {
  const all = dataset.map((_, row) => row);
  if (!hasEveryClass(dataset, all))
    throw new CuvetteError(
      'invalid_input',
      `All ${dataset.length} rows have the same label. A probe needs rows of both.`,
    );
  if (share === 0) return { by: 'none', trained: all, heldOut: [] };
  for (const by of ['pair', 'template', 'row'] as const) {
    if (by !== 'row' && dataset.every((row) => row[by] === undefined)) continue;
    const chosen = new Set(choose(groupsOf(dataset, by), dataset.length * share, random));
    const trained = all.filter((row) => !chosen.has(row));
    // A prompt that was trained on does not test, even in another row.
    const seen = new Set(trained.map((row) => rowAt(dataset, row).prompt));
    const heldOut = all.filter((row) => chosen.has(row) && !seen.has(rowAt(dataset, row).prompt));
    if (hasEveryClass(dataset, heldOut) && hasEveryClass(dataset, trained)) return { by, trained, heldOut };
  }
  throw new CuvetteError(
    'invalid_input',
    `${dataset.length} rows are too few to train on some and test on others. Give more rows of every class, or held_out: 0.`,
  );
}

/** Strata of groups; the same share of each is held out. */
function groupsOf(dataset: readonly DatasetRow[], by: 'pair' | 'template' | 'row'): number[][][] {
  const single = Array.from({ length: classesOf(dataset) }, (_, label) =>
    dataset.flatMap((row, number) =>
      row.label === label && (by === 'row' || row[by] === undefined) ? [[number]] : [],
    ),
  );
  const together = by === 'row' ? [] : [...groupsBy(dataset, (row) => row[by]).values()];
  return [together, ...single].filter((stratum) => stratum.length > 0);
}

function choose(strata: number[][][], wanted: number, random: Random): number[] {
  const total = strata.flat(2).length;
  return strata.flatMap((groups) => {
    const enough = (wanted * groups.flat().length) / total;
    const taken: number[] = [];
    for (const group of random.shuffle(groups)) {
      if (taken.length >= enough) break;
      taken.push(...group);
    }
    return taken;
  });
}

function hasEveryClass(dataset: readonly DatasetRow[], rows: readonly number[]): boolean {
  return new Set(labelsOf(dataset, rows)).size === classesOf(dataset);
}

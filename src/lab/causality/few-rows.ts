/** Chooses a few of many rows, with a counterfactual for each among them. */

import { missing, pick } from '../core/missing.ts';
import type { Random } from '../statistics/random.ts';
import { classesOf, groupsBy, rowAt } from './dataset.ts';
import { choosePartners } from './partners.ts';
import type { DatasetRow } from './question.ts';

/** Indices among the rows that were to choose from, and for each the index, among these, of its counterfactual. */
export interface FewRows {
  indices: number[];
  partners: number[];
}

/** Whole pairs first, then rows of each label in turn. */
export function chooseFewRows(
  dataset: readonly DatasetRow[],
  from: readonly number[],
  most: number,
  random: Random,
): FewRows {
  const rows = from.map((row) => rowAt(dataset, row));
  const pairs = random.shuffle(groupsBy(rows, (row) => row.pair).values());
  const single = Array.from({ length: classesOf(dataset) }, (_, label) =>
    random.shuffle(rows.flatMap((row, index) => (row.pair === undefined && row.label === label ? [index] : []))),
  );
  const turns = Array.from({ length: Math.min(...single.map(({ length }) => length)) }, (_, i) =>
    single.map((own, label) => own[i] ?? missing('row with label', label)),
  );
  const indices: number[] = [];
  for (const group of [...pairs, ...turns]) {
    if (indices.length === 0 || indices.length + group.length <= most) indices.push(...group);
  }
  return { indices, partners: choosePartners(dataset, pick(from, indices, 'row'), random).partners };
}

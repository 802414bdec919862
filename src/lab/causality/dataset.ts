/** Checks the rows of a dataset, and groups them by pair and template. */

import { CuvetteError } from '../../errors.ts';
import { missing } from '../core/missing.ts';
import { countClasses, nameOfClass } from './classes.ts';
import { type DatasetRow, MOST_CLASSES } from './question.ts';

const FEWEST = 12;

/** Makes rows from parallel lists. Labels are checked, as they come from a caller. */
export function makeDataset(
  prompts: readonly string[],
  labels: readonly number[],
  groups: { pairs?: readonly (string | undefined)[]; templates?: readonly (string | undefined)[] } = {},
): DatasetRow[] {
  for (const [name, list] of Object.entries({ labels, ...groups })) {
    if (list !== undefined && list.length !== prompts.length) {
      throw bad(`There are ${prompts.length} prompts and ${list.length} ${name}. Give one of them for each prompt.`);
    }
  }
  return prompts.map((prompt, i) => {
    const value = labels[i];
    if (value === undefined || !Number.isInteger(value) || value < 0 || value >= MOST_CLASSES)
      throw bad(`Label ${i} is ${value}. Labels are 0 or 1, or with more classes integers up to ${MOST_CLASSES - 1}.`);
    const [pair, template] = [groups.pairs?.[i], groups.templates?.[i]];
    return {
      prompt,
      label: value,
      ...(pair !== undefined && { pair }),
      ...(template !== undefined && { template }),
    };
  });
}

/** Throws if the rows are too few or have one class only, or if a pair has one label only. */
export function checkDataset(
  rows: readonly DatasetRow[],
  names: readonly string[] | undefined,
  name = 'The dataset',
  fewest = FEWEST,
): void {
  const counts = classSizes(rows);
  const [negatives = 0, positives = 0] = counts;
  const isTwofold = counts.length <= 2;
  if (isTwofold && (positives === 0 || negatives === 0)) {
    throw bad(
      `${name} has one class only: ${positives} rows with label 1, ${negatives} with label 0. Give examples of both.`,
    );
  }
  if (Math.min(...counts) < fewest) {
    const found = isTwofold
      ? `${positives} rows with label 1 and ${negatives} with label 0`
      : `${counts.map((count, index) => `${count} of class ${nameOfClass(names, index)}`).join(', ')} among its rows`;
    throw bad(`${name} has ${found}. The protocol needs at least ${fewest} of each.`);
  }
  for (const [pair, members] of groupsBy(rows, (row) => row.pair)) {
    const labels = new Set(labelsOf(rows, members));
    if (labels.size < 2) {
      throw bad(
        `Pair ${JSON.stringify(pair)} has no two rows with different labels. A pair is a prompt and its counterfactual: the same but for what the label is about.`,
      );
    }
  }
}

/** The classes of a dataset, by how many rows each has. */
export function classSizes(rows: readonly DatasetRow[]): number[] {
  const counts = Array.from({ length: classesOf(rows) }, () => 0);
  for (const { label } of rows) counts[label] = (counts[label] ?? missing('class', label)) + 1;
  return counts;
}

/** Two at least: with one only, the other has no rows. */
export function classesOf(rows: readonly DatasetRow[]): number {
  return countClasses(rows.map(({ label }) => label));
}

/** The labels of the chosen rows. */
export function labelsOf(rows: readonly DatasetRow[], chosen: readonly number[]): number[] {
  return chosen.map((row) => rowAt(rows, row).label);
}

export function rowAt(rows: readonly DatasetRow[], row: number): DatasetRow {
  return rows[row] ?? missing('row of the dataset', row);
}

/** Row numbers by a key, in the order of their first rows; rows without one are left out. */
export function groupsBy(
  rows: readonly DatasetRow[],
  keyOf: (row: DatasetRow) => string | undefined,
): Map<string, number[]> {
  const groups = new Map<string, number[]>();
  rows.forEach((row, number) => {
    const key = keyOf(row);
    if (key === undefined) return;
    const group = groups.get(key);
    if (group) group.push(number);
    else groups.set(key, [number]);
  });
  return groups;
}

/**
 * Clusters of the chosen rows for the bootstrap: a pair is one cluster, and so is every other row; pairs and each label of the others are
 * strata. Numbers are indices into `chosen`.
 */
export function clustersOf(rows: readonly DatasetRow[], chosen: readonly number[]): number[][][] {
  const picked = chosen.map((row) => rowAt(rows, row));
  const paired = [...groupsBy(picked, (row) => row.pair).values()];
  const single = Array.from({ length: classesOf(picked) }, (_, label) =>
    picked.flatMap((row, index) => (row.pair === undefined && row.label === label ? [[index]] : [])),
  );
  return [paired, ...single].filter((stratum) => stratum.length > 0);
}

/** Groups of the chosen rows within which labels may be permuted: each pair, and all rows without one. */
export function exchangeableGroups(rows: readonly DatasetRow[], chosen: readonly number[]): number[][] {
  const picked = chosen.map((row) => rowAt(rows, row));
  const paired = [...groupsBy(picked, (row) => row.pair).values()];
  const single = picked.flatMap((row, index) => (row.pair === undefined ? [index] : []));
  return single.length > 0 ? [...paired, single] : paired;
}

function bad(message: string): CuvetteError {
  return new CuvetteError('invalid_input', message);
}

/** Splits rows into a discovery half, which a direction is fitted on, and a test half. Rows of a pair or template stay together. */

import { CuvetteError } from '../../errors.ts';
import { missing } from '../core/missing.ts';
import type { Random } from '../statistics/random.ts';
import { classesOf, groupsBy, labelsOf, rowAt } from './dataset.ts';
import type { Evidence } from './evidence.ts';
import type { CausalQuestion, DatasetRow } from './question.ts';

/** Rows of each class that a half must have. */
const FEWEST = 4;

/** The most rows that interventions are made on. */
const INTERVENED = 256;

export function splitRows(
  question: Pick<CausalQuestion, 'dataset' | 'direction' | 'target'>,
  random: Random,
): Evidence['split'] {
  const { dataset, direction, target } = question;
  const all = dataset.map((_, row) => row);
  if (direction.kind === 'given' && direction.trainedOn && direction.trainedOn.length > 0) {
    const discovery = withPartners(dataset, direction.trainedOn);
    const test = all.filter((row) => !discovery.includes(row));
    if (!isUsable(dataset, test)) {
      throw new CuvetteError(
        'invalid_input',
        `The direction was trained on these rows: only ${test.length} of ${dataset.length} are left to test it on, and ${FEWEST} of each class are needed. Give rows that it has not seen, or let the protocol fit the direction.`,
      );
    }
    return finish(dataset, 'given', discovery, test, random);
  }
  const isWhole = direction.kind === 'given' && !direction.others?.length && classesOf(dataset) === 2;
  if (isWhole && target) return finish(dataset, 'none', [], all, random);

  for (const by of ['pair', 'template', 'row'] as const) {
    const halves = halve(dataset, by, random);
    if (halves) return finish(dataset, by, ...halves, random);
  }
  throw new CuvetteError('invalid_input', 'The rows cannot be split into two halves that have every class. Give more.');
}

/** Assigns groups, in random order, to the half that has fewer rows of their label. */
function halve(
  dataset: readonly DatasetRow[],
  by: 'pair' | 'template' | 'row',
  random: Random,
): [number[], number[]] | undefined {
  const named = by === 'row' ? new Map<string, number[]>() : groupsBy(dataset, (row) => row[by]);
  if (by !== 'row' && named.size < 2) return undefined;
  const loose = dataset.flatMap((row, number) => (by === 'row' || row[by] === undefined ? [[number]] : []));
  const halves: [number[], number[]] = [[], []];
  for (const group of random.shuffle([...named.values(), ...loose])) {
    const [label, ...others] = labelsOf(dataset, group);
    const weight = (half: number[]) =>
      half.length + (others.length === 0 ? labelsOf(dataset, half).filter((one) => one === label).length : 0);
    const [first, second] = halves;
    (weight(first) <= weight(second) ? first : second).push(...group);
  }
  if (!halves.every((half) => isUsable(dataset, half))) return undefined;
  return halves;
}

function isUsable(dataset: readonly DatasetRow[], rows: readonly number[]): boolean {
  return Math.min(...countsIn(dataset, rows, classesOf(dataset))) >= FEWEST;
}

/** How many of the rows each class has. */
function countsIn(dataset: readonly DatasetRow[], rows: readonly number[], classes: number): number[] {
  const labels = labelsOf(dataset, rows);
  return Array.from({ length: classes }, (_, label) => labels.filter((one) => one === label).length);
}

/** The rows, with all other rows of their pairs. */
function withPartners(dataset: readonly DatasetRow[], rows: readonly number[]): number[] {
  const pairs = new Set(rows.map((row) => rowAt(dataset, row).pair).filter((pair) => pair !== undefined));
  return dataset.flatMap((row, number) =>
    rows.includes(number) || (row.pair !== undefined && pairs.has(row.pair)) ? [number] : [],
  );
}

function finish(
  dataset: readonly DatasetRow[],
  by: Evidence['split']['by'],
  discovery: number[],
  test: number[],
  random: Random,
): Evidence['split'] {
  const sorted = (rows: number[]) => rows.toSorted((a, b) => a - b);
  return { by, discovery: sorted(discovery), test: sorted(test), intervened: sorted(choose(dataset, test, random)) };
}

/** The rows to intervene on: all, or whole pairs first and then equally many of each class. */
function choose(dataset: readonly DatasetRow[], test: number[], random: Random): number[] {
  if (test.length <= INTERVENED) return test;
  const tested = new Set(test);
  const pairs = [...groupsBy(dataset, (row) => row.pair).values()].filter(
    ([first]) => first !== undefined && tested.has(first),
  );
  const single = test.filter((row) => rowAt(dataset, row).pair === undefined).map((row) => [row]);
  const groups = [...random.shuffle(pairs), ...random.shuffle(single)];
  const chosen: number[] = [];
  const classes = classesOf(dataset);
  const most = Math.floor(INTERVENED / classes);
  let taken = countsIn(dataset, [], classes);
  for (const group of groups) {
    const counts = countsIn(dataset, group, classes);
    const after = taken.map((count, label) => count + (counts[label] ?? missing('class', label)));
    if (Math.max(...after) > most) continue;
    taken = after;
    chosen.push(...group);
  }
  return chosen;
}

/** SessionQueue the labels of callers, which are numbers or names, into numbers of classes. */

import { CuvetteError } from '../../errors.ts';
import { MOST_CLASSES } from '../causality/question.ts';
import { missing } from '../core/missing.ts';
import type { Label } from '../store/captures.ts';

export interface ClassLabels {
  labels: number[];
  /** In the order of their numbers; labels that are numbers have none. */
  names?: string[];
}

/** Names are numbered in alphabetical order, or as `known` has them. */
export function classLabels(given: readonly Label[], known?: readonly string[]): ClassLabels {
  const names = given.filter((label) => typeof label === 'string');
  if (names.length === 0 && known === undefined) return { labels: numbersOf(given) };
  if (names.length < given.length)
    throw bad('Some labels are numbers and some are names. Give numbers from 0 on, or names, for all rows.');
  const order = known ?? [...new Set(names)].sort();
  if (order.length > MOST_CLASSES)
    throw bad(`The labels have ${order.length} different names. There may be ${MOST_CLASSES} classes at most.`);
  const labels = names.map((name) => {
    const index = order.indexOf(name);
    if (index === -1) throw bad(`There is no class ${JSON.stringify(name)}. The classes are ${order.join(', ')}.`);
    return index;
  });
  return { labels, names: [...order] };
}

/** Every class from 0 on must have rows: a number that is skipped is a mistake. */
function numbersOf(given: readonly Label[]): number[] {
  const labels = given.map((label, row) => {
    if (typeof label === 'number' && Number.isInteger(label) && label >= 0 && label < MOST_CLASSES) return label;
    throw bad(`Label ${row} is ${label}. Labels are 0 or 1; for more classes, integers from 0 on, or names.`);
  });
  const found = new Set(labels);
  for (let label = 0; label < Math.max(0, ...labels); label++) {
    // With label 1 alone there is one class only, which is told by whoever needs both.
    if (!found.has(label) && Math.max(...found) > 1)
      throw bad(`No row has label ${label}, and some have ${Math.max(...found)}. Number the classes from 0 on.`);
  }
  return labels;
}

/** The number of a class by what a caller calls it. */
export function classNumber(name: string, count: number, names: readonly string[] | undefined): number {
  const all = names ?? Array.from({ length: count }, (_, index) => String(index));
  const index = all.indexOf(name);
  if (index !== -1) return index;
  throw bad(`There is no class ${JSON.stringify(name)}. The classes are ${all.join(', ')}.`);
}

/** For tools that compare two classes. */
export function checkTwoClasses(labels: readonly number[], tool: string): void {
  if (Math.max(0, ...labels) <= 1) return;
  throw bad(
    `${tool} compares two classes, and these labels have more. Give labels with two; causality_protocol takes more.`,
  );
}

/** A name that the caller may read: the class's own, else its number. */
export function shownLabel(label: number, names: readonly string[] | undefined): string | number {
  return names ? (names[label] ?? missing('name of class', label)) : label;
}

function bad(message: string): CuvetteError {
  return new CuvetteError('invalid_input', message);
}

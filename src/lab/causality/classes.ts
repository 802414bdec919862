/**
 * Describes the classes that labels put rows into. They are numbered from 0; where a caller names them, names go with the question. What is kept for two
 * classes as negative (0) and positive (1) has those after them as others.
 */

/** Two at least. */
export function countClasses(labels: Iterable<number>): number {
  let most = 1;
  for (const label of labels) most = Math.max(most, label);
  return most + 1;
}

interface ByClass<T> {
  positive: T;
  negative: T;
  others?: readonly T[] | undefined;
}

/** In the order of their numbers. */
export function byClass<T>({ positive, negative, others = [] }: ByClass<T>): T[] {
  return [negative, positive, ...others];
}

/** Each pair of classes once, the later class first. */
export function pairsOfClasses(classes: number): [number, number][] {
  const all = Array.from({ length: classes }, (_, index) => index);
  return all.flatMap((later) => all.slice(0, later).map((earlier): [number, number] => [later, earlier]));
}

/** The last first, which for two is the positive one. */
export function fromLast(classes: number): number[] {
  return Array.from({ length: classes }, (_, i) => classes - 1 - i);
}

/** How a class is named to whoever reads: as its caller named it, else by its number. */
export function nameOfClass(names: readonly string[] | undefined, index: number): string {
  return names?.[index] ?? String(index);
}

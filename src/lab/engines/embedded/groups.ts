/** Cuts a list of things into groups that fit. */

/** One after the other, as many as there is room for together, but at least one. */
export function inGroups<T>(values: readonly T[], size: (value: T) => number, room: number): T[][] {
  const groups: T[][] = [];
  let left = 0;
  for (const value of values) {
    const group = groups.at(-1);
    const fits = group !== undefined && size(value) <= left;
    if (!fits) left = room;
    left -= size(value);
    if (fits) group.push(value);
    else groups.push([value]);
  }
  return groups;
}

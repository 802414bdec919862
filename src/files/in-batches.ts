/** Does the same for many files, a few at a time: what others ask the disk for meanwhile waits behind those alone. */

export const AT_ONCE = 32;

export async function inBatches<T>(items: readonly T[], work: (item: T) => Promise<unknown>): Promise<void> {
  for (let at = 0; at < items.length; at += AT_ONCE) await Promise.all(items.slice(at, at + AT_ONCE).map(work));
}

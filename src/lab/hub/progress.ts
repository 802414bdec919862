/** Reports the progress of a download of several files, a few times a second. */

import type { HubFile } from './listing.ts';

const INTERVAL = 200;

export interface HubProgress {
  /** The one that is being received. */
  file: string;
  /** Bytes of all files together; those that were here before count. */
  received: number;
  total: number;
  percent: number;
  /** Bytes per second, since the download began. */
  rate: number;
}

/** Gives a function to be told how many bytes of a missing file are there. */
export function followProgress(
  files: readonly HubFile[],
  missing: readonly HubFile[],
  onProgress: ((progress: HubProgress) => void) | undefined,
): (file: HubFile, count: number) => void {
  const total = knownSize(files);
  const there = total - knownSize(missing);
  const counts = new Map<string, number>();
  const started = performance.now();
  let atFirst: number | undefined;
  let last = 0;
  return (file, count) => {
    counts.set(file.name, count);
    const received = [...counts.values()].reduce((sum, bytes) => sum + bytes, there);
    // The first chunk comes with what an earlier download left, which is no measure of speed.
    atFirst ??= received;
    const now = performance.now();
    if (now - last < INTERVAL && count !== file.size) return;
    last = now;
    const seconds = Math.max((now - started) / 1000, 0.001);
    const percent = total === 0 ? 100 : Math.min(100, (100 * received) / total);
    onProgress?.({ file: file.name, received, total, percent, rate: Math.max(0, received - atFirst) / seconds });
  };
}

/** Bytes of the files whose size the hub has told; the others are added to none of the sums. */
export function knownSize(files: readonly HubFile[]): number {
  return files.reduce((sum, { size }) => (size === undefined ? sum : sum + size), 0);
}

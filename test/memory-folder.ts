/** Finds a folder in memory for files that tests write and throw away: on a disk, each file that the code under test makes durable would cost them milliseconds. */

import { accessSync, constants, readFileSync, statfsSync } from 'node:fs';

const FOLDER = '/dev/shm';
/** In a container, the folder may hold next to nothing. */
const ENOUGH_BYTES = 2 << 30;

/** Undefined where there is none, it is too small, or programs in it cannot be run. */
export function memoryFolder(): string | undefined {
  try {
    accessSync(FOLDER, constants.W_OK);
    const { bavail, bsize } = statfsSync(FOLDER);
    return bavail * bsize >= ENOUGH_BYTES && !isNoexec() ? FOLDER : undefined;
  } catch {
    return undefined;
  }
}

function isNoexec(): boolean {
  const mount = readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .find((line) => line.split(' ')[1] === FOLDER);
  return mount?.split(' ')[3]?.split(',').includes('noexec') ?? true;
}

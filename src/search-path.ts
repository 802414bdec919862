/** Finds programs on PATH. It ignores relative folders, whose meaning depends on the current folder. */

import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';

export function searchPath(env: NodeJS.ProcessEnv = process.env): string[] {
  return (env.PATH ?? '').split(delimiter).filter(isAbsolute);
}

/** The first program of that name that can be run. */
export function findProgram(name: string, env: NodeJS.ProcessEnv = process.env): string | undefined {
  return searchPath(env)
    .map((folder) => join(folder, name))
    .find(isExecutable);
}

export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile(); // Folders may be entered by the same right.
  } catch {
    return false;
  }
}

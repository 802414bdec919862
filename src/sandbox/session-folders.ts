/** Makes the folders of a confined session, and lists where they are mounted for its code. */

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { SEEN } from './layout.ts';
import type { Sandbox } from './sandbox.ts';

export interface SessionFolders {
  /** The session's own, which code does not see as a whole. */
  folder: string;
  workspace: string;
  /** Where code sees the workspace. */
  seen: string;
}

/** From where the driver sees each to where code does. Only what runs programs sees their sources. */
export function sessionMounts(
  sandbox: Sandbox,
  { folder, workspace, seen }: SessionFolders,
  withPrograms: boolean,
): [string, string][] {
  const places: [string, string][] = [
    [join(folder, 'home'), SEEN.home],
    [join(folder, 'tmp'), SEEN.temporary],
    ...(withPrograms ? ([[join(folder, 'programs'), SEEN.programs]] as [string, string][]) : []),
  ];
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  sandbox.give(folder);
  for (const [path] of places) {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    sandbox.give(path);
  }
  places.push([workspace, seen]);
  return places.map(([path, seen]) => [sandbox.inside(path), seen]);
}

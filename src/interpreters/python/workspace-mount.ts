/** Probes whether this machine lets a process have a workspace mounted at /mnt/data for itself alone. */

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { packageFile } from '../../package-root.ts';

const PROBE = packageFile('python', 'cuvette_driver', 'workspace_mount.py');

export interface WorkspaceMountAnswer {
  isPossible: boolean;
  /** Why not. */
  problem: string | null;
}

export async function probeWorkspaceMount(python: string): Promise<WorkspaceMountAnswer> {
  try {
    await promisify(execFile)(python, ['-S', '-E', PROBE], { timeout: 20_000, cwd: '/' });
    return { isPossible: true, problem: null };
  } catch (error) {
    const { stderr } = error as { stderr?: string };
    return { isPossible: false, problem: stderr?.trim().split('\n').at(-1) ?? 'it could not be tried' };
  }
}

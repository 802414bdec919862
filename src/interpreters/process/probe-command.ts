/** Finds a command on PATH and asks it for its version. One that fails is passed over, as if it were not there. */

import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { isExecutable, searchPath } from '../../search-path.ts';
import type { LanguageInfo } from './language.ts';

const run = promisify(execFile);
const TIMEOUT_MS = 20_000;

export interface CommandQuery {
  /** Names of the command, the preferred one first. */
  names: string[];
  args: string[];
  /** Its first group is the version. */
  version: RegExp;
  /** Folders to look in after those on PATH. */
  folders?: string[];
}

export interface Command {
  path: string;
  version: string;
  /** The first line of the answer. */
  says: string;
}

// What was found stays; what is missing is looked for again, so that it can be installed while the server runs.
const found = new Map<string, Command>();

/** The answer as a language gives it, for a command that needs no further questions. */
export async function probeTool(question: CommandQuery): Promise<LanguageInfo> {
  const command = await probeCommand(question);
  return command ? { path: command.path, version: command.version } : { missing: question.names };
}

export async function probeCommand(question: CommandQuery): Promise<Command | undefined> {
  const folders = [...searchPath(), ...(question.folders ?? [])];
  const key = JSON.stringify([question.names, question.args, folders]);
  const known = found.get(key);
  if (known) return known;
  for (const name of question.names) {
    for (const folder of new Set(folders)) {
      const command = await ask(join(folder, name), question);
      if (!command) continue;
      found.set(key, command);
      return command;
    }
  }
  return undefined;
}

async function ask(path: string, { args, version }: CommandQuery): Promise<Command | undefined> {
  if (!isExecutable(path)) return undefined;
  try {
    const { stdout } = await run(path, args, { timeout: TIMEOUT_MS, cwd: '/' });
    const match = version.exec(stdout);
    if (!match?.[1]) return undefined;
    return { path, version: match[1], says: stdout.split('\n', 1)[0] ?? '' };
  } catch {
    return undefined;
  }
}

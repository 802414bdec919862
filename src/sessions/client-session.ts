/**
 * Finds the conversation that a server works for, if its agent tells. Claude Code does: it keeps the id of each session under its own
 * pid, gives it to the servers that it starts, and writes the transcript below its settings' folder.
 */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import * as z from 'zod';
import { ancestorsOf, type ProcessInfo } from '../process-tree.ts';
import { ancestorsUpToAgent } from './find-agent.ts';

export interface ClientSession {
  id: string;
  /** Not there before the first message. */
  transcript?: string;
}

const VARIABLE = 'CLAUDE_CODE_SESSION_ID';
const noteSchema = z.object({ pid: z.number(), sessionId: z.string(), procStart: z.string().optional() });

export function findClientSession(env: NodeJS.ProcessEnv = process.env, pid = process.pid): ClientSession | undefined {
  const folder = env.CLAUDE_CONFIG_DIR || join(homedir(), '.claude');
  // The note changes when the conversation is cleared, and the variable does not.
  const id = notedAbove(folder, pid) ?? given(env, pid);
  if (id === undefined || !/^[\w-]+$/.test(id)) return undefined;
  const transcript = transcriptOf(join(folder, 'projects'), id);
  return { id, ...(transcript !== undefined && { transcript }) };
}

/** By the nearest of the process's ancestors that has a note. */
function notedAbove(folder: string, pid: number): string | undefined {
  for (const ancestor of ancestorsOf(pid)) {
    const id = noted(folder, ancestor);
    if (id !== undefined) return id;
  }
  return undefined;
}

/** What the process has noted of itself, and not another one that had its pid before. */
function noted(folder: string, { pid, started }: ProcessInfo): string | undefined {
  try {
    const note = noteSchema.parse(JSON.parse(readFileSync(join(folder, 'sessions', `${pid}.json`), 'utf8')));
    const isComparable = process.platform === 'linux' && note.procStart !== undefined;
    return note.pid === pid && (!isComparable || note.procStart === started) ? note.sessionId : undefined;
  } catch {
    return undefined;
  }
}

/** By the agent itself: a variable that it has only inherited is of another conversation. */
function given(env: NodeJS.ProcessEnv, pid: number): string | undefined {
  const id = env[VARIABLE];
  const agent = ancestorsUpToAgent(pid).at(-1);
  return id !== undefined && agent && !environmentOf(agent.pid).includes(`${VARIABLE}=${id}`) ? id : undefined;
}

/** Nothing where it cannot be read. */
function environmentOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
  } catch {
    return [];
  }
}

function transcriptOf(projects: string, id: string): string | undefined {
  try {
    return readdirSync(projects)
      .map((project) => join(projects, project, `${id}.jsonl`))
      .find((path) => existsSync(path));
  } catch {
    return undefined;
  }
}

/** Reads the process tree: who started whom, and whether a process that was noted down is still that process. */

import { readFileSync } from 'node:fs';

/** A process, named so that a later one with the same pid is not taken for it. */
export interface ProcessId {
  pid: number;
  started: string;
}

export interface ProcessInfo extends ProcessId {
  parent: number;
  name: string;
}

export function findProcess(pid: number): ProcessInfo | undefined {
  if (process.platform === 'linux') return fromProc(pid);
  return fromPs(pid);
}

export function isRunning(id: ProcessId): boolean {
  return findProcess(id.pid)?.started === id.started;
}

export function thisProcess(): ProcessId {
  return { pid: process.pid, started: findProcess(process.pid)?.started ?? '' };
}

/** True if that is another process than this one, and it still runs. */
export function isOtherRunning(id: ProcessId | null): boolean {
  return id !== null && id.pid !== process.pid && isRunning(id);
}

/** The process's parents, nearest first, up to but not including the first process of the machine. */
export function ancestorsOf(pid: number): ProcessInfo[] {
  const found: ProcessInfo[] = [];
  let current = findProcess(pid);
  while (current && current.parent > 1 && found.length < 64) {
    current = findProcess(current.parent);
    if (current) found.push(current);
  }
  return found;
}

function fromProc(pid: number): ProcessInfo | undefined {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return undefined;
  }
  // The name stands in parentheses and may itself hold parentheses and spaces.
  const open = text.indexOf('(');
  const close = text.lastIndexOf(')');
  const fields = text.slice(close + 2).split(' ');
  const [state, parent] = fields;
  if (state === 'Z' || state === 'X') return undefined;
  return { pid, parent: Number(parent), started: fields[19] ?? '', name: text.slice(open + 1, close) };
}

function fromPs(pid: number): ProcessInfo | undefined {
  // Loaded only where it is needed: the shell client pays for every module.
  const { execFileSync } = process.getBuiltinModule('node:child_process');
  try {
    const line = execFileSync('ps', ['-o', 'ppid=,lstart=,comm=', '-p', String(pid)], { encoding: 'utf8' }).trim();
    const match = /^(\d+)\s+(\S+\s+\S+\s+\S+\s+\S+\s+\S+)\s+(.*)$/.exec(line);
    if (!match) return undefined;
    const [, parent = '0', started = '', command = ''] = match;
    return { pid, parent: Number(parent), started, name: command.split('/').pop() ?? command };
  } catch {
    return undefined;
  }
}

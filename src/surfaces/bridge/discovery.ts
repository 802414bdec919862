/**
 * Chooses the server that a shell belongs to: the one that shares the nearest ancestor process with it, which is their agent;
 * otherwise the one whose project holds the shell's folder.
 */

import { sep } from 'node:path';
import { CuvetteError } from '../../errors.ts';
import type { ProcessInfo } from '../../process-tree.ts';
import type { BridgeRequest } from './protocol.ts';
import type { ServerRecord } from './server-record.ts';

const AGENTS = /^(claude|cursor|cursor-agent|codex|gemini|opencode|aider|goose|windsurf|crush|amp|copilot|cline)$/i;
const AGENT_VARIABLES = ['CLAUDECODE', 'CURSOR_AGENT', 'CODEX_SANDBOX', 'GEMINI_CLI', 'OPENCODE'];

export interface Caller {
  /** The shell's own ancestors, nearest first. */
  ancestors: ProcessInfo[];
  cwd: string;
  env: NodeJS.ProcessEnv;
}

/** Returns the server of the caller's agent or folder, if there is one. Throws if two fit equally well. */
export function chooseServer(servers: ServerRecord[], caller: Caller): ServerRecord | undefined {
  const byFolder = inFolder(servers, caller.cwd);
  for (const ancestor of caller.ancestors) {
    const related = servers.filter((server) =>
      server.lineage.some(({ pid, started }) => pid === ancestor.pid && started === ancestor.started),
    );
    if (related.length === 1) return related[0];
    if (related.length > 1) return onlyOne(inFolder(related, caller.cwd), related);
  }
  // A shell of one agent never gets another agent's session, wherever it stands.
  const candidates = hasAgentAbove(caller) ? byFolder.filter(({ kind }) => kind === 'service') : byFolder;
  return candidates.length === 0 ? undefined : onlyOne(candidates, candidates);
}

/**
 * Returns the HTTP service of this machine, which the agent may be connected to, for a shell whose agent has no server of its own and
 * no service in its folder. Throws if there are several.
 */
export function chooseService(servers: ServerRecord[], caller: Caller): ServerRecord | undefined {
  const services = isInsideAgent(caller) ? servers.filter(({ url }) => url !== undefined) : [];
  return services.length === 0 ? undefined : onlyOne(services, services);
}

/** Says whose sessions the shell gets: a server that serves agents over HTTP has some for them beside those of its own folder. */
export function sessionIn({ kind, url, project }: ServerRecord, caller: Caller): BridgeRequest['of'] {
  if (kind !== 'service' || url === undefined || !isInsideAgent(caller)) return undefined;
  return isWithin(caller.cwd, project) ? 'agents if any' : 'agents';
}

/** True if an agent seems to have started this shell, so that a server should have been there. */
export function isInsideAgent(caller: Caller): boolean {
  return hasAgentAbove(caller) || AGENT_VARIABLES.some((name) => caller.env[name]);
}

function hasAgentAbove({ ancestors }: Caller): boolean {
  return ancestors.some(({ name }) => AGENTS.test(name));
}

/** Returns the servers with the innermost project around the folder. */
function inFolder(servers: ServerRecord[], folder: string): ServerRecord[] {
  const around = servers.filter(({ project }) => isWithin(folder, project));
  const longest = Math.max(0, ...around.map(({ project }) => project.length));
  return around.filter(({ project }) => project.length === longest);
}

function isWithin(folder: string, project: string): boolean {
  return folder === project || folder.startsWith(project.endsWith(sep) ? project : project + sep);
}

function onlyOne(fitting: ServerRecord[], all: ServerRecord[]): ServerRecord {
  const [only, ...others] = fitting;
  if (only && others.length === 0) return only;
  const list = (fitting.length > 0 ? fitting : all)
    .map(({ pid, project, url }) => `  --server ${pid}   ${project}${url === undefined ? '' : `   ${url}`}`)
    .join('\n');
  throw new CuvetteError('ambiguous_server', `Several servers fit this shell equally well. Say which one:\n${list}`);
}

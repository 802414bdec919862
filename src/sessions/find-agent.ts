/** Finds the agent that a server works for: the first of its ancestors that is more than a launcher. */

import { ancestorsOf, type ProcessInfo } from '../process-tree.ts';

const LAUNCHERS =
  /^(npm|npx|pnpm|yarn|bunx?|uvx?|env|nice|timeout|sh|dash|bash|zsh|fish|ksh|sudo|setsid|nohup|time|npm .*)$/;

/** The ancestors up to and including the agent, nearest first. */
export function ancestorsUpToAgent(pid: number): ProcessInfo[] {
  const ancestors = ancestorsOf(pid);
  const agent = ancestors.findIndex(({ name }) => !LAUNCHERS.test(name));
  return agent === -1 ? ancestors : ancestors.slice(0, agent + 1);
}

/** Lists every tool that is not the lab's, in the order in which all surfaces show them. */

import type { Tool } from './define-tool.ts';
import { execute, getOutput, interrupt } from './execute.ts';
import { addInterpreter, listInterpreters, stopInterpreter } from './interpreters.ts';
import { exportSession, getSessionInfo, listVars, reset } from './session.ts';

export const TOOLS: readonly Tool[] = [
  execute,
  getOutput,
  interrupt,
  reset,
  listVars,
  getSessionInfo,
  addInterpreter,
  stopInterpreter,
  listInterpreters,
  exportSession,
];

/**
 * Keeps programs that call their caller's own tools: a program runs once and waits at each tool call until the caller sends the result.
 * A program is stopped when its own working time is used up, or when its caller does not come back.
 */

import { nanoid } from 'nanoid';
import { CuvetteError } from '../../errors.ts';
import type { RunningServiceCall, ServiceCallRequest } from '../../sessions/service-calls.ts';
import type { SharedSession } from '../../sessions/shared-sessions.ts';
import {
  bashPrelude,
  openToolChannel,
  pythonPrelude,
  type ToolCall,
  type ToolChannel,
  type ToolResult,
} from '../../sessions/tool-channel.ts';
import { toolName } from '../../sessions/tool-names.ts';

export interface Program {
  owner: string;
  /** The caller's own id of its request, by which it can cancel. */
  requestId: string | undefined;
  language: 'bash' | 'python';
  /** Names of the caller's tools. */
  tools: string[];
  /** Milliseconds that it may work, not counting what it waits for tools. */
  timeout: number;
  begin(wrap: NonNullable<ServiceCallRequest['wrap']>, signal: AbortSignal): Promise<RunningServiceCall>;
}

export interface ProgrammaticRun {
  owner: string;
  requestId: string | undefined;
  call: RunningServiceCall;
  channel: ToolChannel;
  calls: ToolCall[];
  callCount: number;
  onCall: () => void;
  /** Milliseconds of working time that are left. */
  timeLeft: number;
  isTimedOut: boolean;
  token: string | undefined;
  abandoned?: NodeJS.Timeout;
  stop: () => void;
}

/** A program has called tools, whose results the caller sends with the token; or it has ended. */
export type Step = { state: 'calls'; token: string; calls: ToolCall[] } | { state: 'ended' };

export interface ProgrammaticRuns {
  start(program: Program): Promise<ProgrammaticRun>;
  /** Hands the results to the program that waits under this token. */
  resume(token: string, owner: string, results: ToolResult[]): ProgrammaticRun;
  /** Resolves when the program calls tools or ends. An abort stops the program. */
  nextStep(run: ProgrammaticRun, signal: AbortSignal): Promise<Step>;
  /** Stops the programs of this request; false if there are none. */
  cancel(requestId: string, owner: string): boolean;
}

/** Milliseconds; calls that come within this time are sent together. */
const BATCH_WINDOW = 40;
/** Milliseconds after which a program is stopped whose caller sends no results. */
const ABANDONED = 5 * 60_000;
export const MOST_CALLS = 1000;

export function createProgrammaticRuns(): ProgrammaticRuns {
  const runs = new Set<ProgrammaticRun>();

  function watch(run: ProgrammaticRun, tools: Map<string, string>): ProgrammaticRun {
    runs.add(run);
    run.channel.onCall((call) => {
      run.callCount += 1;
      const name = tools.get(call.name);
      if (!name || run.callCount > MOST_CALLS) {
        const error_message = name
          ? `More than ${MOST_CALLS} calls of tools in one program`
          : `There is no tool ${call.name}`;
        return run.channel.answer({ call_id: call.id, is_error: true, error_message });
      }
      run.calls.push({ ...call, name });
      run.onCall();
    });
    const end = () => {
      runs.delete(run);
      clearTimeout(run.abandoned);
      run.channel.close();
    };
    run.call.execution.done.then(end, end);
    return run;
  }

  return {
    async start({ owner, requestId, language, tools, timeout, begin }) {
      const names = new Map(tools.map((name) => [toolName(name, language), name]));
      const stopped = new AbortController();
      let channel: ToolChannel | undefined;
      const wrap = (code: string, session: SharedSession) => {
        channel = openToolChannel(session.workspace, session.codeOwner);
        return withTools(code, language, session, channel, [...names.keys()]);
      };
      try {
        const call = await begin(wrap, stopped.signal);
        if (!channel) throw new Error('the program was not prepared');
        const stop = () => stopped.abort();
        const state = { calls: [], callCount: 0, onCall: () => {}, timeLeft: timeout, isTimedOut: false };
        return watch({ owner, requestId, call, channel, token: undefined, stop, ...state }, names);
      } catch (error) {
        channel?.close();
        throw error;
      }
    },
    resume(token, owner, results) {
      const run = [...runs].find((waiting) => waiting.token === token && waiting.owner === owner);
      if (!run)
        throw new CuvetteError('unknown_execution', 'There is no program that waits under this continuation token.');
      run.token = undefined;
      clearTimeout(run.abandoned);
      for (const result of results) run.channel.answer(result);
      return run;
    },
    async nextStep(run, signal) {
      const began = performance.now();
      const timer = setTimeout(() => {
        run.isTimedOut = true;
        run.stop();
      }, run.timeLeft);
      signal.addEventListener('abort', run.stop, { once: true });
      const hasCalls = await Promise.race([nextCalls(run), run.call.execution.done.then(() => false)]);
      signal.removeEventListener('abort', run.stop);
      clearTimeout(timer);
      run.timeLeft = Math.max(1, run.timeLeft - (performance.now() - began));
      if (!hasCalls) return { state: 'ended' };
      const token = nanoid(32);
      run.token = token;
      run.abandoned = setTimeout(run.stop, ABANDONED);
      return { state: 'calls', token, calls: run.calls.splice(0) };
    },
    cancel(requestId, owner) {
      const found = [...runs].filter((run) => run.requestId === requestId && run.owner === owner);
      for (const run of found) run.stop();
      return found.length > 0;
    },
  };
}

/** Resolves once the program has called, and calls for no more within the batch window. */
async function nextCalls(run: ProgrammaticRun): Promise<boolean> {
  if (run.calls.length === 0)
    await new Promise<void>((resolve) => {
      run.onCall = resolve;
    });
  for (let before = -1; before !== run.calls.length; ) {
    before = run.calls.length;
    await new Promise((resolve) => setTimeout(resolve, BATCH_WINDOW));
  }
  return true;
}

/** Adds the tools without moving the lines of the code, which errors name: on its first line, or as a run of its own before it. */
function withTools(
  code: string,
  language: 'bash' | 'python',
  session: SharedSession,
  channel: ToolChannel,
  names: string[],
): { before?: string; code: string } {
  const folder = `${session.seen}/${channel.name}`;
  if (language === 'python') return { before: pythonPrelude(folder, names), code };
  channel.put('tools.sh', bashPrelude(folder, names));
  return { code: `. '${folder.replaceAll("'", "'\\''")}/tools.sh'; ${code}` };
}

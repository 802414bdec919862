/** Runs one session: queues executions, routes the events of interpreters to them, and recovers what a dead server left. */

import { setTimeout as sleep } from 'node:timers/promises';
import { CuvetteError } from '../errors.ts';
import type {
  Completion,
  InterpreterEvent,
  LiveInterpreter,
  LookRequest,
  ValueView,
  Variable,
} from '../interpreters/interpreter.ts';
import { adviseExternal, installForBuiltin } from '../interpreters/python/installs.ts';
import type { ProcessId } from '../process-tree.ts';
import { busyWith } from './busy.ts';
import {
  describeLimit,
  endingFrom,
  endingNotStarted,
  endingOfLostInterpreter,
  endingOfStoppedInterpreter,
  reachedLimitOf,
} from './ending.ts';
import type { Execution } from './execution.ts';
import type { ExecutionOrigin, ExecutionRecord } from './execution-record.ts';
import { BUILTIN } from './interpreter-catalog.ts';
import { createInterpreterPool, type InterpreterPool, type PoolOptions } from './interpreter-pool.ts';
import { storedExecution, unknownExecution } from './seen-session.ts';
import type { ExecutionChange } from './session-changes.ts';
import type { SessionStore } from './session-store.ts';
import { createTurns } from './turns.ts';

export interface ExecuteRequest {
  code: string;
  interpreter?: string | undefined;
  /** By which way it came in; kept in its record. */
  origin?: ExecutionOrigin | undefined;
  /** Seconds; 0 for no limit. */
  timeout?: number | undefined;
  /** Ends the execution when aborted. */
  signal?: AbortSignal | undefined;
  /** What the program finds as its arguments, and on its standard input. */
  args?: string[] | undefined;
  stdin?: string | undefined;
  /** Bash: keeps variables, functions and the folder for the next call. */
  isStateful?: boolean | undefined;
  /** The caller is told its number before it runs, so it is on disk before that. */
  isAnnounced?: boolean;
  /** Wraps the run: what it does before and after happens in the session's queue, between other executions. */
  around?(run: () => Promise<void>): Promise<void>;
}

export interface SessionLimits {
  timeout: number;
  outputLimit: number;
  maxOutput: number;
  autoInstall: boolean;
  /** Other callers use the environment, too, so nothing is installed into it. */
  isShared?: boolean;
}

export interface SessionOptions extends Omit<PoolOptions, 'session'> {
  id: string;
  limits: SessionLimits;
  /** Is told of each execution that is queued, begins and ends. */
  onChange?(change: ExecutionChange): void;
}

export interface Session {
  readonly id: string;
  readonly project: string;
  readonly folder: string;
  readonly limits: SessionLimits;
  readonly interpreters: InterpreterPool;
  /** Puts code in the queue. */
  execute(request: ExecuteRequest): Execution;
  /** An execution of this session, running or ended. */
  execution(number: number): Execution;
  /** The execution that runs now or waits to, newest last. */
  pending(): Execution[];
  history(): ExecutionRecord[];
  /** How many executions there have been. */
  readonly size: number;
  interrupt(number: number): void;
  variables(interpreter: string): Promise<Variable[]>;
  /** The same for who waits no longer than that, without starting an interpreter: one that does not run has none. */
  runningVariables(interpreter: string, waiting: Waiting): Promise<Variable[]>;
  /** Looks at a value in its turn, without a trace in the history. */
  look(interpreter: string, request: LookRequest, waiting: Waiting): Promise<ValueView>;
  complete(interpreter: string, code: string, cursor: number, waiting: Waiting): Promise<Completion>;
  /** Clears an interpreter; says how many names it held. */
  reset(interpreter: string): Promise<number>;
  /** Disconnects from the interpreters, which wait for another server. */
  leave(linger: number, owner: ProcessId | null): Promise<void>;
  /** Ends the interpreters. */
  stop(): Promise<void>;
}

/** How long somebody waits for code that runs. */
export interface Waiting {
  /** Seconds until it throws `session_busy`. */
  wait: number;
  signal?: AbortSignal | undefined;
}

const REPLAY_MS = 500;
const CANCELLED_IN_QUEUE = endingNotStarted('Cancelled before it was its turn; it did not run.');

export function createSession(options: SessionOptions): Session {
  const { id, project, folder, limits, store } = options;
  const live = new Map<string, Execution>();
  /** Interpreters that hold variables of earlier calls. */
  const withVariables = usedInterpreters(store, id);
  let last = store.lastNumber(id);
  let lastSent: Execution | undefined;
  /** Executions that were cancelled while their interpreter was still starting. */
  const cancelled = new Set<number>();
  const sent = new Set<number>();
  let isStopped = false;

  const pool = createInterpreterPool({ ...options, session: id }, (name, interpreter) => {
    interpreter.onEvent((event) => void onEvent(name, interpreter, event).catch(() => {}));
    interpreter.onLost(() => onLost(name));
    interpreter.onIdleDeath((cause) => {
      withVariables.delete(name);
      const doomed = [...live.values()].find(({ record }) => record.interpreter === name && sent.has(record.number));
      if (doomed) doomed.note(diedBetweenCalls(cause));
      else idleDeaths.set(name, cause);
    });
  });
  const idleDeaths = new Map<string, string>();
  const turns = createTurns(recover());

  function toExecution(record: ExecutionRecord): Execution {
    return storedExecution(record, store, folder, limits.outputLimit);
  }

  /** Holds an execution until it has ended, and tells of both. */
  function follow(execution: Execution): void {
    const key = String(execution.record.number);
    live.set(key, execution);
    options.onChange?.({ type: 'execution', execution });
    execution.done.then(() => {
      live.delete(key);
      // What it holds can be large, and is on disk.
      if (lastSent === execution) lastSent = undefined;
      options.onChange?.({ type: 'execution', execution });
    });
  }

  // -- running ----------------------------------------------------------------------------------

  function execute(request: ExecuteRequest): Execution {
    last += 1;
    const execution = toExecution({
      session: id,
      number: last,
      interpreter: request.interpreter ?? BUILTIN,
      origin: request.origin ?? null,
      code: request.code,
      state: live.size === 0 && pool.isOpen(request.interpreter ?? BUILTIN) ? 'running' : 'queued',
      outcome: null,
      reason: null,
      exitCode: null,
      timeout: request.timeout === 0 ? null : (request.timeout ?? (limits.timeout || null)),
      startedAt: Date.now(),
      wall: null,
      cpu: null,
      peak: null,
      variablesSurvived: true,
      ended: [],
      installed: [],
      outputs: [],
      text: '',
      textLength: 0,
      outputFile: null,
      outputBytes: 0,
      notes: [],
    });
    if (request.isAnnounced || execution.record.state === 'queued') store.putExecution(execution.record, 0);
    follow(execution);
    turns
      .take(() => runInTurn(execution, request))
      .catch((error) => {
        const message = error instanceof Error ? error.message : String(error);
        void execution.finish({
          outcome: 'error',
          reason: { code: 'not-started', message },
          exitCode: 70,
          variablesSurvived: true,
        });
      });
    return execution;
  }

  async function runInTurn(execution: Execution, request: ExecuteRequest): Promise<void> {
    if (isEnded(execution)) return;
    if (request.signal?.aborted || isStopped) return execution.finish(CANCELLED_IN_QUEUE);
    const runIt = () => run(execution, request);
    return request.around ? request.around(runIt) : runIt();
  }

  async function run(execution: Execution, { signal, args, stdin, isStateful }: ExecuteRequest): Promise<void> {
    const { record } = execution;
    const { live: interpreter, isFresh } = await pool.open(record.interpreter);
    if (isEnded(execution)) return;
    if (signal?.aborted || cancelled.delete(record.number)) return execution.finish(CANCELLED_IN_QUEUE);
    noteLostState(execution, isFresh);
    if (pool.keepsVariables(record.interpreter)) withVariables.add(record.interpreter);
    lastSent = execution;
    execution.start();
    options.onChange?.({ type: 'execution', execution });
    sent.add(record.number);
    const cancel = () => interpreter.interrupt(String(record.number), 'cancelled');
    interpreter.execute({
      id: String(record.number),
      code: record.code,
      cell: record.number,
      timeout: record.timeout,
      limit: limits.maxOutput,
      args,
      stdin,
      isStateful,
    });
    store.putExecution(record, 0); // While the code already runs.
    signal?.addEventListener('abort', cancel, { once: true });
    await execution.done;
    sent.delete(record.number);
    signal?.removeEventListener('abort', cancel);
    if (!record.variablesSurvived) withVariables.delete(record.interpreter);
  }

  function noteLostState(execution: Execution, isFresh: boolean): void {
    const { interpreter } = execution.record;
    const cause = idleDeaths.get(interpreter);
    idleDeaths.delete(interpreter);
    if (cause) execution.note(diedBetweenCalls(cause));
    else if (isFresh && withVariables.has(interpreter) && pool.keepsVariables(interpreter))
      execution.note('a fresh interpreter: the one that earlier calls used has ended, and their variables are lost');
  }

  // -- events -----------------------------------------------------------------------------------

  async function onEvent(name: string, interpreter: LiveInterpreter, event: InterpreterEvent): Promise<void> {
    const execution = executionOf(event.id);
    if (!execution) return interpreter.acknowledge(event.seq);
    if (event.kind === 'output') return execution.take(event, interpreter);
    if (event.kind === 'missing-package') return installFor(name, interpreter, execution, event.module);
    if (event.kind === 'built') return interpreter.proceed();
    const { ending: report } = event;
    const session = options.sandbox?.policy.limits;
    const ending = endingFrom(report, { timeout: execution.record.timeout, maxOutput: limits.maxOutput, session });
    const hit = reachedLimitOf(report, session);
    if (ending.outcome === 'ok' && hit && session) execution.note(describeLimit(hit, session));
    await execution.finish(ending, report, () => interpreter.acknowledge(event.seq), event.seq);
  }

  /** The execution that an event belongs to: a live one, or one whose threads still print after its end. */
  function executionOf(eventId: string): Execution | undefined {
    const known = live.get(eventId);
    if (known) return known;
    if (lastSent && String(lastSent.record.number) === eventId) return lastSent;
    const record = store.execution(id, Number(eventId));
    if (!record) return undefined;
    lastSent = toExecution(record);
    if (record.state !== 'done') follow(lastSent);
    else options.onChange?.({ type: 'late output', execution: lastSent });
    return lastSent;
  }

  async function installFor(
    name: string,
    interpreter: LiveInterpreter,
    execution: Execution,
    module: string,
  ): Promise<void> {
    const environment = pool.isBuiltin(name) ? await options.environment.state() : undefined;
    if (environment?.phase === 'making') {
      execution.say(`[${module}: waiting for the managed environment, which is being made: ${environment.progress}]\n`);
    }
    const { answer, installed } = pool.isBuiltin(name)
      ? await installForBuiltin(options.environment, module, {
          enabled: limits.autoInstall,
          isShared: limits.isShared || options.sandbox !== undefined,
          hasWayOut: options.sandbox !== undefined && options.sandbox.policy.network !== 'none',
          signal: execution.signal,
        }).catch(failedInstall)
      : adviseExternal(interpreter.state.executable, module);
    if (installed) execution.noteInstall(installed);
    interpreter.answerInstall(module, answer);
  }

  function onLost(name: string): void {
    for (const execution of live.values()) {
      const { record } = execution;
      if (record.state !== 'running' || record.interpreter !== name) continue;
      void execution.finish(pool.wasStopped(name) ? endingOfStoppedInterpreter() : endingOfLostInterpreter());
    }
  }

  // -- looking at what there is -----------------------------------------------------------------

  function whenFree<T>(
    name: string,
    { wait, signal }: Waiting,
    work: (interpreter: LiveInterpreter | undefined) => Promise<T>,
  ): Promise<T> {
    const tooLong = () => busyWith([...live.values()]);
    return turns.take(async () => work(await pool.attach(name)), { wait: wait * 1000, signal, tooLong });
  }

  // -- after a crash ----------------------------------------------------------------------------

  /** Resumes what ran when the last server died: interpreters outlive it and keep the events that it did not acknowledge. */
  async function recover(): Promise<void> {
    for (const record of store.unfinished(id)) {
      const execution = toExecution(record);
      follow(execution);
      if (record.state === 'queued')
        await execution.finish(endingNotStarted('The server stopped before it was its turn; it did not run.'));
      else await resume(execution);
    }
  }

  async function resume(execution: Execution): Promise<void> {
    const { record } = execution;
    const interpreter = await pool.attach(record.interpreter);
    if (!interpreter) return execution.finish(endingOfLostInterpreter());
    if (interpreter.state.running === String(record.number)) return void (await execution.done);
    await Promise.race([execution.done, sleep(REPLAY_MS, undefined, { ref: false })]);
    if (execution.record.state !== 'done')
      await execution.finish(endingNotStarted('The server stopped just before it ran.'));
  }

  return {
    id,
    project,
    folder,
    limits,
    interpreters: pool,
    execute,
    execution(number) {
      const running = live.get(String(number));
      if (running) return running;
      const record = store.execution(id, number);
      if (record) return toExecution(record);
      throw unknownExecution(id, number, last);
    },
    pending: () => [...live.values()],
    history: () => store.executions(id),
    get size() {
      return last;
    },
    interrupt(number) {
      const execution = this.execution(number);
      if (execution.record.state === 'queued') void execution.finish(CANCELLED_IN_QUEUE);
      if (execution.record.state !== 'running') return;
      if (!sent.has(number)) cancelled.add(number);
      pool
        .attach(execution.record.interpreter)
        .then((interpreter) => interpreter?.interrupt(String(number), 'cancelled'));
    },
    variables: (name) =>
      turns.take(async () => {
        const { live: interpreter } = await pool.open(name);
        return interpreter.variables();
      }),
    runningVariables: (name, waiting) =>
      whenFree(name, waiting, async (interpreter) => (await interpreter?.variables()) ?? []),
    look: (name, request, waiting) =>
      whenFree(name, waiting, async (interpreter) => {
        if (interpreter) return interpreter.look(request, waiting.signal);
        throw new CuvetteError('unknown_variable', `The interpreter ${name} does not run, so it has no variables.`);
      }),
    complete: (name, code, cursor, waiting) =>
      whenFree(name, waiting, async (interpreter) =>
        interpreter ? interpreter.complete(code, cursor, waiting.signal) : { matches: [], start: cursor, end: cursor },
      ),
    async reset(name) {
      for (const { record } of this.pending()) if (record.interpreter === name) this.interrupt(record.number);
      return turns.take(async () => {
        const { live: interpreter } = await pool.open(name);
        const names = await interpreter.variables();
        await interpreter.reset();
        withVariables.delete(name);
        const row = store.session(id);
        if (row) store.putSession({ ...row, cleared: { ...row.cleared, [name]: last } });
        options.onChange?.({ type: 'cleared', interpreter: name });
        return names.length;
      });
    },
    async leave(linger, owner) {
      for (const interpreter of await pool.running()) interpreter.leave(linger, owner);
    },
    async stop() {
      isStopped = true;
      await pool.stopAll();
    },
  };
}

function failedInstall(error: unknown) {
  return {
    answer: {
      installed: false,
      hint: `It could not be installed: ${error instanceof Error ? error.message : String(error)}`,
    },
    installed: undefined,
  };
}

/** True if it was cancelled while it waited. */
function isEnded({ record }: Execution): boolean {
  return record.state === 'done';
}

function diedBetweenCalls(cause: string): string {
  return `the interpreter had died between calls (${cause}); variables of earlier calls are lost`;
}

function usedInterpreters(store: SessionStore, id: string): Set<string> {
  const cleared = store.session(id)?.cleared ?? {};
  const kept = [...store.lastWithVariables(id)].filter(([name, last]) => last > (cleared[name] ?? 0));
  return new Set(kept.map(([name]) => name));
}

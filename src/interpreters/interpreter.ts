/** Defines what a session needs of anything that runs code: requests, events, how an execution ended. Python and the other languages implement it. */

import * as z from 'zod';
import { CuvetteError } from '../errors.ts';

const mimeBundle = z.record(z.string(), z.unknown());
const rich = { data: mimeBundle, metadata: mimeBundle, preview: z.exactOptional(z.string()) };

/** One thing that code showed, in Jupyter's vocabulary. */
export const outputSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('stream'), name: z.enum(['stdout', 'stderr']), text: z.string() }),
  z.object({
    type: z.literal('display'),
    ...rich,
    displayId: z.exactOptional(z.string()),
    update: z.exactOptional(z.boolean()),
  }),
  z.object({ type: z.literal('result'), ...rich }),
  z.object({ type: z.literal('error'), ename: z.string(), evalue: z.string(), traceback: z.array(z.string()) }),
]);

export type MimeBundle = z.infer<typeof mimeBundle>;
export type Output = z.infer<typeof outputSchema>;

export interface InstallAnswer {
  installed: boolean;
  /** Folders to add to the interpreter's search path. */
  paths?: string[];
  /** What the user can do, shown in the import error. */
  hint?: string;
}

/** What an interpreter reports while an execution runs. `seq` is what to acknowledge once it is on disk. */
export type InterpreterEvent =
  | { kind: 'output'; id: string; seq: number; output: Output }
  | { kind: 'missing-package'; id: string; seq: number; module: string }
  /** A program is built, and waits for `proceed` before it is run. */
  | { kind: 'built'; id: string; seq: number }
  | { kind: 'done'; id: string; seq: number; ending: ExitReport };

export const stopReason = z.enum(['timeout', 'cancelled', 'output-limit', 'disk-quota', 'too-many-processes']);
/** Limits of its session that an execution can run into. */
export const reachedLimit = z.enum(['oom', 'too-many-processes', 'disk-quota']);
export const escalation = z.enum(['interrupted', 'children-killed', 'killed']);

export type StopReason = z.infer<typeof stopReason>;
export type ReachedLimit = z.infer<typeof reachedLimit>;
export type Escalation = z.infer<typeof escalation>;

/** How an execution ended, as the interpreter reports it. */
export const exitReportSchema = z.object({
  status: z.enum(['ok', 'error', 'exit', 'signal', 'death']),
  exitCode: z.exactOptional(z.number()),
  errorName: z.exactOptional(z.string()),
  death: z.exactOptional(z.object({ exit: z.number().nullable(), signal: z.string().nullable(), oom: z.boolean() })),
  /** What killed a program. */
  signal: z.exactOptional(z.string()),
  isOutOfMemory: z.exactOptional(z.boolean()),
  /** For a program: how many of the steps of its plan went well. */
  steps: z.exactOptional(z.number()),
  /** The interpreter was ended because user code broke its control channel. */
  brokeChannel: z.exactOptional(z.boolean()),
  stopped: z.exactOptional(z.object({ why: stopReason, rung: escalation })),
  hit: z.exactOptional(z.array(reachedLimit)),
  wall: z.number(),
  cpu: z.number(),
  peak: z.number(),
  /** Commands of the processes that ended with the call. */
  ended: z.array(z.string()),
});

export type ExitReport = z.infer<typeof exitReportSchema>;

/** A name in an interpreter, as it describes it and as callers are told of it. */
export const variableSchema = z.object({
  name: z.string(),
  type: z.string(),
  shape: z.array(z.number()).optional(),
  dtype: z.string().optional(),
  length: z.number().optional(),
  bytes: z.number().optional(),
  preview: z.string().optional(),
});

export type Variable = z.infer<typeof variableSchema>;

/** Which part of a value to look at. */
export interface LookRequest {
  /** Of the value, as in `df`, `config['layers'][3]` or `model.weights`. */
  path: string;
  /** The first row or item, and how many. */
  offset?: number | undefined;
  limit?: number | undefined;
  /** The first column, and the one after the last. */
  columns?: [number, number] | undefined;
  /** The name of a column. */
  sort?: string | undefined;
  desc?: boolean | undefined;
  /** A text that rows show. */
  filter?: string | undefined;
}

const cell = z.union([z.string(), z.number(), z.boolean(), z.null()]);

/** A value as somebody who looks at it sees it, or as much of it as was asked for. */
export const valueViewSchema = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('table'),
    type: z.string(),
    columns: z.array(z.object({ name: z.string(), dtype: z.string() })),
    index: z.array(z.string()),
    rows: z.array(z.array(cell)),
    /** Of those that were asked for: all, or those that match the filter. */
    row_count: z.number(),
    total_count: z.number(),
    column_count: z.number(),
    offset: z.number(),
    column_offset: z.number(),
  }),
  z.object({
    kind: z.literal('tree'),
    type: z.string(),
    /** What an object says of itself. */
    text: z.string().optional(),
    items: z.array(
      z.object({
        key: z.string(),
        /** Leads to the item. */
        path: z.string(),
        type: z.string(),
        preview: z.string(),
        has_children: z.boolean(),
      }),
    ),
    count: z.number(),
    offset: z.number(),
  }),
  /** `length` is that of the whole text. */
  z.object({ kind: z.literal('text'), type: z.string(), text: z.string(), length: z.number() }),
]);

export type ValueView = z.infer<typeof valueViewSchema>;

/** Where code goes on: `matches` stand in place of the characters from `start` to `end`. */
export const completionSchema = z.object({ matches: z.array(z.string()), start: z.number(), end: z.number() });

export type Completion = z.infer<typeof completionSchema>;

export interface InterpreterRequest {
  id: string;
  code: string;
  /** The number of the execution in its session, for tracebacks. */
  cell: number;
  /** Seconds, or null for no limit. */
  timeout: number | null;
  /** Characters that may be printed. */
  limit: number;
  /** What the program finds as its arguments. */
  args?: string[] | undefined;
  /** What the program finds on its standard input; nothing if not given. Not for live interpreters. */
  stdin?: string | undefined;
  /** Bash: keeps variables, functions and the folder for the next call. */
  isStateful?: boolean | undefined;
}

/** For a keeper of programs: what to run, in a row, until one of them fails. */
export interface ProgramRequest {
  steps: { argv: string[]; env?: Record<string, string> }[];
  cwd: string;
  /** Mounts `cwd` at /mnt/data, and `folder` at /mnt/program. */
  place: boolean;
  folder: string;
  /** For a confined keeper that has no session yet: the session's own folders. */
  mounts?: [string, string][];
  env: Record<string, string>;
  stdin: string | null;
  limits: { memory?: number; cpu?: number };
}

export interface InterpreterState {
  pid: number;
  version: string;
  executable: string;
  /** Grows each time that the interpreter had to start afresh. */
  generation: number;
  /** The execution that was already running when the server came. */
  running: string | null;
}

/** A live interpreter. After `onLost`, it is gone, and a new one must be started. */
export interface LiveInterpreter {
  readonly state: InterpreterState;
  onEvent(listener: (event: InterpreterEvent) => void): void;
  onLost(listener: () => void): void;
  /** It died while nothing ran, and has started afresh; says how it died. */
  onIdleDeath(listener: (cause: string) => void): void;
  execute(request: InterpreterRequest & { program?: ProgramRequest }): void;
  interrupt(id: string, why: StopReason): void;
  /** Lets a program run that is built. */
  proceed(): void;
  acknowledge(seq: number): void;
  answerInstall(module: string, answer: InstallAnswer): void;
  variables(): Promise<Variable[]>;
  /** Looks at a value without running code of a cell; given up, at the latest, when the signal is aborted. */
  look(request: LookRequest, signal?: AbortSignal): Promise<ValueView>;
  /** Completes code at the cursor, which counts characters as JavaScript does. */
  complete(code: string, cursor: number, signal?: AbortSignal): Promise<Completion>;
  /** A fresh interpreter in place of this one; whatever ran is ended. */
  reset(): Promise<void>;
  /** Disconnects: the interpreter waits for another server, for `linger` seconds, or as long as its owner lives. */
  leave(linger: number, owner: { pid: number; started: string } | null): void;
  /** Ends it and everything it started. */
  stop(): Promise<void>;
}

/** For an interpreter whose values cannot be looked at. */
export function notLookedInto(why: string): Pick<LiveInterpreter, 'look' | 'complete'> {
  const refuse = async () => {
    throw new CuvetteError('invalid_input', why);
  };
  return { look: refuse, complete: refuse };
}

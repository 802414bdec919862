/** Defines the record of an execution: what the store keeps of it and what its caller is told. */

import type { OUTCOMES } from '../interpreters/execution-events.ts';
import type { Escalation, Output } from '../interpreters/interpreter.ts';
import type { Installed } from '../interpreters/python/installs.ts';

export type ExecutionOutcome = (typeof OUTCOMES)[number];

/** By which way an execution came in: an agent's tool call, a shell, the workbench page, or a program over REST. */
export const EXECUTION_ORIGINS = ['agent', 'shell', 'page', 'rest'] as const;

export type ExecutionOrigin = (typeof EXECUTION_ORIGINS)[number];

export type EndingReasonCode =
  | 'exception'
  | 'exit'
  | 'timeout'
  | 'cancelled'
  | 'output-limit'
  | 'oom'
  | 'too-many-processes'
  | 'disk-quota'
  | 'signal'
  | 'process-exit'
  | 'broken-channel'
  | 'interpreter-lost'
  | 'not-started';

export interface EndingReason {
  code: EndingReasonCode;
  /** A sentence that the caller can act on. */
  message: string;
}

export interface ExecutionRecord {
  session: string;
  number: number;
  interpreter: string;
  /** Null where nobody told, as in records of earlier versions. */
  origin: ExecutionOrigin | null;
  code: string;
  state: 'queued' | 'running' | 'done';
  outcome: ExecutionOutcome | null;
  reason: EndingReason | null;
  /** The status that a shell would see. */
  exitCode: number | null;
  /** What killed the interpreter or the program, if it was not stopped. */
  signal?: string;
  /** If it was stopped: how far that had to go. */
  rung?: Escalation;
  /** Seconds that it may run; null for no limit. */
  timeout: number | null;
  startedAt: number;
  /** Seconds. */
  wall: number | null;
  cpu: number | null;
  /** Bytes. */
  peak: number | null;
  variablesSurvived: boolean;
  /** Commands of the processes that ended with the call. */
  ended: string[];
  installed: Installed[];
  outputs: Output[];
  /** Characters of text that the execution gave, all told. */
  textLength: number;
  /** The text, or as much of its beginning as fits into an answer. */
  text: string;
  /** Where the whole text is, if it is longer than an answer. */
  outputFile: string | null;
  /** Bytes of that file that are part of this record; more were written but never acknowledged. */
  outputBytes: number;
  /** What the caller should know beside the output. */
  notes: string[];
}

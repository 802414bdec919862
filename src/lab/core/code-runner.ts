/** Defines the interface to the Python that holds a model, for code that runs beside the model. */

import { randomInt } from 'node:crypto';
import type { ExitReport, Output, Variable } from '../../interpreters/interpreter.ts';

/** `life` is the number of the running Python process: it changes when a new one was started and variables were lost. */
export interface CodeRunner {
  run(code: string, options: RunOptions): Promise<{ ending: ExitReport; life: number }>;
  /** Interrupts the run of that name, if it is running or queued. */
  interrupt(run: string): void;
  describe(): Promise<{ version: string; executable: string; life: number }>;
  variables(): Promise<Variable[]>;
  /** Starts a new process, which loads the model again. */
  reset(): Promise<void>;
}

export interface RunOptions {
  run: string;
  /** Seconds. */
  timeout: number | null;
  /** Characters that may be printed. */
  limit: number;
  /** A number for tracebacks. */
  cell: number;
  signal: AbortSignal;
  onOutput(output: Output): void;
}

/** The numbers that one runner may count through, and how many random starts there are. */
const LIVES = 2 ** 16;
const MOST_STARTS = 2 ** 36;

/** A random start, so that two runners never have a number in common. */
export function firstLife(): number {
  return randomInt(MOST_STARTS) * LIVES;
}

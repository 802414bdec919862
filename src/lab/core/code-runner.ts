/** Numbers for the lives of a Python elsewhere: whoever has talked to one knows by its number whether it is still the same. */

import { randomInt } from 'node:crypto';
import type { Ending, Output, Variable } from '../../interpreters/interpreter.ts';

/** The Python that holds the model, for code beside it. */
export interface CodeRunner {
  run(code: string, options: RunOptions): Promise<{ ending: Ending; life: number }>;
  /** The run of that name, if it goes on. */
  interrupt(run: string): void;
  describe(): Promise<{ version: string; executable: string; life: number }>;
  variables(): Promise<Variable[]>;
  /** A fresh one, which loads the model again. */
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

/** Lives of one Python, which no other counts; and how many first ones there are to draw from. */
const LIVES = 2 ** 16;
const MOST_STARTS = 2 ** 36;

export function firstLife(): number {
  return randomInt(MOST_STARTS) * LIVES;
}

/** The types of run.mjs, for its test. */

export interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

export interface Step {
  name: string;
  command: string;
  args?: string[];
  quiet?: boolean;
  countLine?(line: string, counts: Counts): void;
  /** Milliseconds without a sign after which it is taken for hung. */
  hungAfter?: number;
}

export interface StepResult {
  status: number | null;
  lines: string[];
  counts: Counts;
  problem?: string;
  seconds: number;
}

export function run(step: Step): Promise<StepResult>;

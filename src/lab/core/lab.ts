/** A lab: a place where one model is open and can be asked the primitives. It may be this very process, or a server elsewhere. */

import type { Output } from '../../interpreters/interpreter.ts';

/** Of the routes and what they take and give. Two labs of the same number understand each other. */
export const PROTOCOL = 1;
/** Of what has none of these routes, and runs code in its own way. */
export const CODE_ALONE = 0;

export interface Lab {
  /** Calls a primitive by its name. */
  call(name: string, args: Record<string, unknown>, context: LabContext): Promise<Record<string, unknown>>;
  close(): Promise<void>;
}

export interface LabContext {
  /** Aborted when the caller gives up. */
  signal: AbortSignal;
  /** Tells the caller what goes on. */
  progress(message: string): void;
  /** Takes what code shows, as it is shown. */
  output?(output: Output): void;
  /** SHA-256 of the model that the caller means: a lab elsewhere that has another refuses the call. */
  weights?: string;
}

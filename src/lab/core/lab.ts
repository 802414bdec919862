/** Defines the lab interface: one open model that answers primitives, in this process or on a remote server. */

import type { Output } from '../../interpreters/interpreter.ts';

/** The version of the routes and of their arguments and answers. Client and server must have the same. */
export const PROTOCOL = 1;
/** The version of a service that has none of these routes, and only runs code. */
export const CODE_ALONE = 0;

export interface Lab {
  /** Calls a primitive by its name. */
  call(name: string, args: Record<string, unknown>, context: LabContext): Promise<Record<string, unknown>>;
  close(): Promise<void>;
}

export interface LabContext {
  /** Aborted when the caller gives up. */
  signal: AbortSignal;
  /** Takes sentences on what is being done. */
  progress(message: string): void;
  /** Takes the output of code as it comes. */
  output?(output: Output): void;
  /** SHA-256 of the weights that the caller attached to: a remote lab with other weights rejects the call. */
  weights?: string;
}

/** Tells somebody who waits for a session that it is busy, and with which execution. */

import { CuvetteError } from '../errors.ts';
import type { Execution } from './execution.ts';

/** `pending` are the executions that run or wait. */
export function busyWith(pending: Execution[]): CuvetteError {
  const first = pending.find(({ record }) => record.state === 'running') ?? pending[0];
  const execution = first?.record.number;
  return new CuvetteError(
    'session_busy',
    execution === undefined
      ? 'Somebody looks at another value of this session. Try again in a moment.'
      : `Execution ${execution} runs. Wait until it has ended, or interrupt it.`,
    { cause: { execution } },
  );
}

/** The execution that a session was busy with, if the error says so. */
export function executionInTheWay({ cause }: CuvetteError): number | undefined {
  if (typeof cause !== 'object' || cause === null || !('execution' in cause)) return undefined;
  return typeof cause.execution === 'number' ? cause.execution : undefined;
}

/** What a caller is told of an error that comes when the status 200 is sent already: an answer that every client shows, with the error in `stderr`. */

import type { Logger } from '../../log.ts';
import type { RunningServiceCall } from '../../sessions/service-calls.ts';
import { explain } from './problem.ts';

/** Without `session_id` if the error came before there was a session. */
export function lateFailure(error: unknown, call: RunningServiceCall | undefined, log: Logger): object {
  const { code, sentence } = explain(error);
  log[code === 'internal' ? 'error' : 'debug']({ err: error }, 'request failed after its answer had begun');
  const stderr = `${sentence}\n`;
  const nothing = { signal: null, memory: null, cpu_time: null, wall_time: null };
  return {
    ...(call && { session_id: call.sharedSession.session.id }),
    stdout: '',
    stderr,
    files: [],
    run: { ...nothing, stdout: '', stderr, output: stderr, code: 1, status: 'XX', reason: code, message: sentence },
  };
}

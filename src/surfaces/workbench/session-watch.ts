/** Tells what happens in one session, with what its executions show, and what happens to the sessions of one caller. */

import type { Execution } from '../../sessions/execution.ts';
import { pagedExecution, type SeenSession } from '../../sessions/seen-session.ts';
import type { ClosedReason, SessionChange } from '../../sessions/session-changes.ts';
import type { Sessions } from '../../sessions/sessions.ts';
import { toExecutionPage, toExecutionState } from './execution-info.ts';
import { type OutputQueue, watchOutput } from './output-queue.ts';
import { toSessionInfo } from './session-info.ts';
import type { Watched } from './watches.ts';

/** Executions that a snapshot has. */
const IN_SNAPSHOT = 50;
/** Milliseconds for which changes of one session are put together. */
const TOGETHER_MS = 100;

const CLOSED: Record<ClosedReason, string> = {
  evicted:
    'The session was idle for long, or made room for another: its variables are gone, its files and its history are kept.',
  removed: 'The session was removed, with its files and its history.',
};

/** `seen` was looked at just now; it is looked at again for each snapshot. */
export function watchSession(sessions: Sessions, { id }: SeenSession): Watched {
  const queues = new Map<Execution, OutputQueue>();

  function flushAll(): void {
    for (const queue of queues.values()) queue.flush();
  }

  return {
    snapshot() {
      flushAll();
      const seen = sessions.look(id);
      if (!seen) return closed('removed');
      const page = toExecutionPage(seen, Number.MAX_SAFE_INTEGER, IN_SNAPSHOT);
      return { type: 'snapshot', session: toSessionInfo(seen), ...page };
    },
    begin(tell, end) {
      const attach = (execution: Execution) => {
        if (!queues.has(execution)) queues.set(execution, watchOutput(execution, tell));
      };
      const detach = (execution: Execution) => {
        queues.get(execution)?.close();
        queues.delete(execution);
      };
      const onExecution = (execution: Execution) => {
        const { state, interpreter } = execution.record;
        if (state === 'done') queues.get(execution)?.flush();
        else attach(execution);
        tell({ type: 'execution', execution: toExecutionState(pagedExecution(execution)) });
        if (state !== 'done') return;
        detach(execution);
        tell({ type: 'variables', interpreter });
        tell({ type: 'files' });
      };
      const onChange = (change: SessionChange) => {
        if (change.session !== id) return;
        if (change.type === 'execution') onExecution(change.execution);
        if (change.type === 'late output') {
          for (const earlier of [...queues.keys()]) if (earlier.record.state === 'done') detach(earlier);
          attach(change.execution);
        }
        if (change.type === 'cleared') tell({ type: 'variables', interpreter: change.interpreter });
        if (change.type === 'files') tell({ type: 'files' });
        if (change.type !== 'closed') return;
        tell(closed(change.reason));
        if (change.reason === 'removed') end();
      };
      for (const execution of sessions.look(id)?.live?.pending() ?? []) attach(execution);
      const unwatch = sessions.watch(onChange);
      return () => {
        unwatch();
        for (const execution of [...queues.keys()]) detach(execution);
      };
    },
  };
}

function closed(reason: ClosedReason): object {
  return { type: 'closed', reason, message: CLOSED[reason] };
}

export function watchCaller(sessions: Sessions): Watched {
  return {
    snapshot: () => ({ type: 'sessions', sessions: sessions.list().map(toSessionInfo) }),
    begin(tell) {
      const changed = new Set<string>();
      let timer: NodeJS.Timeout | undefined;
      const flush = () => {
        timer = undefined;
        for (const id of changed) {
          const seen = sessions.look(id);
          tell(seen ? { type: 'session', session: toSessionInfo(seen) } : { type: 'session-removed', id });
        }
        changed.clear();
      };
      const unwatch = sessions.watch(({ session, type }) => {
        if (type === 'files' || type === 'cleared' || type === 'late output') return;
        changed.add(session);
        timer ??= setTimeout(flush, TOGETHER_MS);
      });
      return () => {
        unwatch();
        clearTimeout(timer);
      };
    },
  };
}

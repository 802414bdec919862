/** The sessions of one caller of the service, as tools see them: their executions go the same way as those of REST. */

import { BUILTIN } from './interpreter-pool.ts';
import type { ServerResources } from './server-resources.ts';
import type { ServiceCalls } from './service-calls.ts';
import { NEW, type Sessions } from './sessions.ts';
import type { SessionChoice, SharedSessions } from './shared-sessions.ts';

export interface PrincipalSessionsOptions {
  shared: SharedSessions;
  calls: ServiceCalls;
  resources: ServerResources;
  /** A sentence on what keeps code from harm. */
  sandbox: string;
  startedAt: number;
}

const WORKSPACE = '/mnt/data';
/** What a caller's session is called that names none. */
const DEFAULT = { alias: 'default' };

export function createPrincipalSessions(owner: string, options: PrincipalSessionsOptions): Sessions {
  const { shared, calls, resources, sandbox, startedAt } = options;
  return {
    project: WORKSPACE,
    sandbox,
    environment: resources.environment,
    startedAt,
    agent: null,
    socketPath: Promise.resolve(null),
    async start({ session: id, interpreter = BUILTIN, ...request }) {
      const call = await calls.start({ ...request, owner, interpreter, session: choiceOf(id), files: [] });
      // Tools read the transcript.
      call.finished.finally(() => call.printed.release()).catch(() => {});
      return { session: call.shared.session, execution: call.execution, finished: call.finished };
    },
    async use(id, work) {
      const held = await shared.open({ owner, ...choiceOf(id) });
      try {
        return await work(held.session);
      } finally {
        await shared.release(held);
      }
    },
    all: () => shared.liveOf(owner),
    warmUp: shared.warmUp,
    close: async () => {},
  };
}

/** Whether the owner's default session lives. */
export function hasDefault(owner: string, shared: SharedSessions): boolean {
  return shared.liveOf(owner).some(({ id }) => id === shared.idOf(owner, DEFAULT.alias));
}

function choiceOf(id: string | undefined): SessionChoice {
  if (id === undefined) return DEFAULT;
  return id === NEW ? {} : { id, mustExist: true };
}

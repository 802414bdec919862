/**
 * Tells what is known of a session without opening it, so that looking at a history evicts nobody: what runs or waits comes from the open
 * session, if it is open, and the rest from the store.
 */

import { join } from 'node:path';
import { CuvetteError } from '../errors.ts';
import { createExecution, type Execution } from './execution.ts';
import type { ExecutionRecord } from './execution-record.ts';
import type { Session } from './session.ts';
import type { PagedExecution, SessionRow, SessionStore } from './session-store.ts';

export interface SeenSession {
  readonly id: string;
  /** What its owner calls it. */
  readonly names: string[];
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  readonly usedAt: number;
  /** Whether calls that name no session use it. */
  readonly isDefault: boolean;
  /** How many executions there have been. */
  readonly executions: number;
  /** The session itself, if it is open here. */
  readonly live: Session | undefined;
  readonly history: SessionHistory;
  readonly workspace: SessionWorkspace;
}

export interface SessionWorkspace {
  readonly folder: string;
  /** The same folder, as code sees it. */
  readonly seen: string;
  /** Whom files must belong to for the session's code to change them, if not to this process's user. */
  readonly codeOwner: number | undefined;
}

export interface SessionHistory {
  /** The last executions before that number, the oldest first. */
  page(before: number, limit: number): { executions: PagedExecution[]; hasMore: boolean };
  execution(number: number): Execution;
  /** Of all that have ended, with all outputs. */
  ended(): ExecutionRecord[];
  /** Whether an earlier server has left executions that this one has not taken up yet. */
  isInterrupted(): boolean;
}

export interface SeeingOptions {
  row: Pick<SessionRow, 'id' | 'createdAt' | 'usedAt'>;
  store: SessionStore;
  live: Session | undefined;
  /** The session's own folder. */
  folder: string;
  outputLimit: number;
  names: string[];
  isDefault: boolean;
  workspace: SessionWorkspace;
}

export function seeSession(options: SeeingOptions): SeenSession {
  const { row, store, live, names, isDefault, workspace } = options;
  return {
    ...{ id: row.id, createdAt: row.createdAt, usedAt: row.usedAt, names, isDefault, live, workspace },
    executions: live?.size ?? store.lastNumber(row.id),
    history: createHistory(options),
  };
}

function createHistory({ row: { id }, store, live, folder, outputLimit }: SeeingOptions): SessionHistory {
  return {
    page(before, limit) {
      const stored = store.page(id, before, limit + 1);
      const pending = (live?.pending() ?? []).filter(({ record }) => record.number < before);
      // The store lags behind what runs.
      const byNumber = new Map(stored.map((record) => [record.number, record]));
      for (const execution of pending) byNumber.set(execution.record.number, pagedExecution(execution));
      const all = [...byNumber.values()].sort((a, b) => a.number - b.number);
      return { executions: all.slice(-limit), hasMore: all.length > limit };
    },
    execution(number) {
      if (live) return live.execution(number);
      const record = store.execution(id, number);
      if (record) return storedExecution(record, store, folder, outputLimit);
      throw unknownExecution(id, number, store.lastNumber(id));
    },
    ended: () => store.executions(id).filter(({ state, reason }) => state === 'done' && reason?.code !== 'not-started'),
    isInterrupted: () => live === undefined && store.hasUnfinished(id),
  };
}

/** An execution of this server as a page of the history has it. */
export function pagedExecution({ record, transcript }: Execution): PagedExecution {
  return { ...record, outputs: [...transcript.outputs], textLength: transcript.length };
}

/** Takes up an execution where its record says that it is. */
export function storedExecution(
  record: ExecutionRecord,
  store: SessionStore,
  folder: string,
  limit: number,
): Execution {
  return createExecution(record, store, { path: join(folder, `output-${record.number}.txt`), limit });
}

export function unknownExecution(session: string, number: number, last: number): CuvetteError {
  return new CuvetteError(
    'unknown_execution',
    `Session ${session} has no execution ${number}; its last one is ${last}.`,
  );
}

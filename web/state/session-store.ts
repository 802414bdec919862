/** Follows one session: applies its events to cells, fetches older executions, and keeps the page's memory bounded. Drawing is the components'. */

import { type Signal, signal } from '@preact/signals';
import type { Api } from '../api/client.ts';
import { type Connection, follow, type SessionEvent, sessionEventSchema } from '../api/events.ts';
import type { Execution, ExecutionHead, Session } from '../api/schemas.ts';
import { addGap, addOutput, type Cell, charactersOf, createCell, fillCell, replaceOutput, shed } from './cell.ts';
import { createFrames } from './frames.ts';

export interface SessionStore {
  readonly id: string;
  readonly session: Signal<Session | undefined>;
  /** Ascending by number. */
  readonly cells: Signal<readonly Cell[]>;
  readonly hasOlder: Signal<boolean>;
  readonly connection: Signal<Connection>;
  /** Why the server closed the session's stream, while it is closed. */
  readonly closed: Signal<{ reason: string; message: string } | undefined>;
  /** Count what may have changed. */
  readonly variablesChanged: Signal<number>;
  readonly filesChanged: Signal<number>;
  /** The last execution that ended while the page looked, for a screen reader. */
  readonly ended: Signal<ExecutionHead | undefined>;
  loadOlder(): Promise<void>;
  /** Fetches older executions until this one is there; says whether it is. */
  reach(number: number): Promise<boolean>;
  /** Fetches what was dropped. */
  refill(cell: Cell): Promise<void>;
  close(): void;
}

/** Characters of text in all cells; beyond it, cells that were not looked at for long are dropped. */
const MOST_TEXT = 12_000_000;

export function openSession(api: Api, id: string): SessionStore {
  const closing = new AbortController();
  const frames = createFrames();
  const byNumber = new Map<number, Cell>();
  const session = signal<Session | undefined>(undefined);
  const cells = signal<readonly Cell[]>([]);
  const hasOlder = signal(false);
  const connection = signal<Connection>({ state: 'connecting' });
  const closed = signal<{ reason: string; message: string } | undefined>(undefined);
  const variablesChanged = signal(0);
  const filesChanged = signal(0);
  const ended = signal<ExecutionHead | undefined>(undefined);
  const refilling = new Set<number>();
  let older: Promise<void> | undefined;
  let sinceSweep = 0;

  const follows = follow({
    api,
    path: `sessions/${encodeURIComponent(id)}/events`,
    schema: sessionEventSchema,
    onEvent: apply,
    onConnection: (next) => {
      connection.value = next;
      if (next.state === 'open') closed.value = undefined;
    },
    signal: closing.signal,
  });
  follows.catch((error: unknown) => console.error(error));

  function apply(event: SessionEvent): void {
    switch (event.type) {
      case 'snapshot':
        return applySnapshot(event);
      case 'execution':
        return applyHead(event.execution);
      case 'output': {
        const cell = byNumber.get(event.execution);
        if (!cell || cell.isShed) return;
        addOutput(cell, event.output, event.offset ?? undefined);
        if (event.output.type === 'stream') sweepAfter(event.output.text.length);
        return changed(cell);
      }
      case 'update': {
        const cell = byNumber.get(event.execution);
        if (!cell || cell.isShed) return;
        replaceOutput(cell, event.index, event.output);
        return changed(cell);
      }
      case 'skipped': {
        const cell = byNumber.get(event.execution);
        if (!cell) return;
        addGap(cell, event.from, event.to);
        return changed(cell);
      }
      case 'variables':
        variablesChanged.value += 1;
        return;
      case 'files':
        filesChanged.value += 1;
        return;
      case 'closed':
        closed.value = { reason: event.reason, message: event.message ?? '' };
    }
  }

  function applySnapshot({ session: told, executions, has_more }: Extract<SessionEvent, { type: 'snapshot' }>): void {
    session.value = told;
    const first = executions[0]?.number ?? Number.POSITIVE_INFINITY;
    const isJoined = [...byNumber.keys()].some((number) => number === first - 1) || first === 1;
    if (!isJoined) byNumber.clear();
    hasOlder.value = isJoined ? hasOlder.value && first > 1 : has_more;
    if (cells.value.length === 0) hasOlder.value = has_more;
    merge(executions);
    variablesChanged.value += 1;
    filesChanged.value += 1;
  }

  function merge(executions: readonly Execution[]): void {
    for (const execution of executions) {
      const cell = byNumber.get(execution.number) ?? createCell(execution);
      fillCell(cell, execution);
      byNumber.set(cell.number, cell);
      changed(cell);
      sweepAfter(charactersOf(cell));
    }
    publish();
  }

  function applyHead(head: ExecutionHead): void {
    const known = byNumber.get(head.number);
    if (!known) {
      byNumber.set(head.number, createCell(head));
      return publish();
    }
    if (known.head.peek().state !== 'done' && head.state === 'done') ended.value = head;
    known.head.value = head;
  }

  function publish(): void {
    cells.value = [...byNumber.values()].sort((a, b) => a.number - b.number);
  }

  function changed(cell: Cell): void {
    frames.once(cell, () => {
      cell.version.value += 1;
    });
  }

  function sweepAfter(characters: number): void {
    sinceSweep += characters;
    if (sinceSweep < MOST_TEXT / 8) return;
    sinceSweep = 0;
    const kept = [...byNumber.values()].filter((cell) => !cell.isShed);
    let total = kept.reduce((sum, cell) => sum + charactersOf(cell), 0);
    const candidates = kept.filter((cell) => cell.head.peek().state === 'done').sort((a, b) => a.seenAt - b.seenAt);
    for (const cell of candidates) {
      if (total <= MOST_TEXT) return;
      total -= charactersOf(cell);
      shed(cell);
    }
  }

  async function loadOlder(): Promise<void> {
    const first = cells.peek()[0]?.number;
    if (!hasOlder.peek() || first === undefined) return;
    older ??= api
      .executions(id, first, closing.signal)
      .then(({ executions, has_more }) => {
        hasOlder.value = has_more && executions.length > 0;
        merge(executions);
      })
      .finally(() => {
        older = undefined;
      });
    return older;
  }

  return {
    id,
    session,
    cells,
    hasOlder,
    connection,
    closed,
    variablesChanged,
    filesChanged,
    ended,
    loadOlder,
    async reach(number) {
      while (!byNumber.has(number) && hasOlder.peek() && (cells.peek()[0]?.number ?? 0) > number) await loadOlder();
      return byNumber.has(number);
    },
    async refill(cell) {
      if (!cell.isShed || refilling.has(cell.number)) return;
      refilling.add(cell.number);
      try {
        fillCell(cell, await api.execution(id, cell.number, closing.signal));
        changed(cell);
      } finally {
        refilling.delete(cell.number);
      }
    },
    close() {
      closing.abort();
      frames.stop();
    },
  };
}

/** Draws a session: its cells, the composer below them, and the inspector beside them. */

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { SessionDetail } from '../api/schemas.ts';
import { type CellActions, CellView, stateInWords } from '../cells/cell-view.tsx';
import { Inspector } from '../panels/inspector.tsx';
import { useApp } from '../shell/context.ts';
import { Icon } from '../shell/icons.tsx';
import { nameOf } from '../state/app-state.ts';
import type { Cell } from '../state/cell.ts';
import { linkTo } from '../state/route.ts';
import { openSession, type SessionStore } from '../state/session-store.ts';
import { useCellKeys } from './cell-keys.ts';
import { Composer, type ComposerHandle } from './composer.tsx';
import { EmptySession } from './empty-session.tsx';
import { OutputDialog } from './output-dialog.tsx';
import { SessionBar } from './session-bar.tsx';
import { useSessionInfo } from './use-session-info.ts';
import { type ListHandle, VirtualList } from './virtual-list.tsx';

/** The interpreter that every session has. */
const BUILTIN = 'builtin';

interface SessionViewProps {
  id: string;
  linked: number | undefined;
}

export function SessionView({ id, linked }: SessionViewProps) {
  const { api } = useApp();
  const store = useMemo(() => openSession(api, id), [api, id]);
  useEffect(() => () => store.close(), [store]);
  return <OpenSession key={id} store={store} linked={linked} />;
}

function OpenSession({ store, linked }: { store: SessionStore; linked: number | undefined }) {
  const app = useApp();
  const { api, tell, fail } = app;
  const list = useRef<ListHandle>(null);
  const composer = useRef<ComposerHandle>(null);
  const detail = useDetail(store);
  const [follows, setFollows] = useState(true);
  const [opened, setOpened] = useState<number>();
  const [interpreter, setInterpreter] = useState<string>();
  const cells = store.cells.value;
  const chosen = interpreter ?? detail?.interpreters[0]?.name ?? BUILTIN;

  useLinked(store, list, linked);
  useCellKeys(store, { list, composer, interrupt });

  function interrupt(number: number): void {
    api.interrupt(store.id, number).catch(fail);
  }

  async function run(code: string, name: string): Promise<void> {
    await api.run(store.id, { code, interpreter: name });
    list.current?.showEnd();
  }

  const actions: CellActions = {
    interrupt,
    runAgain: (code, name) => void run(code, name).catch(fail),
    edit(code, name) {
      setInterpreter(name);
      composer.current?.take(code);
    },
    copyLink(number) {
      const link = new URL(linkTo({ view: 'session', id: store.id, execution: number }), location.href).href;
      navigator.clipboard
        .writeText(link)
        .then(() => tell(`The link to execution ${number} is copied.`))
        .catch(() => {
          location.hash = linkTo({ view: 'session', id: store.id, execution: number });
        });
    },
    openOutput: setOpened,
    refill: (cell) => void store.refill(cell).catch(fail),
    languageOf: (name) => detail?.interpreters.find((one) => one.name === name)?.language ?? name,
  };

  const render = (cell: Cell) => (
    <CellView cell={cell} source={{ api, session: store.id }} actions={actions} isLinked={cell.number === linked} />
  );
  const session = store.session.value;
  const name = session ? nameOf(session) : store.id;
  return (
    <>
      <main class="session" aria-label={`Session ${name}`}>
        <SessionBar store={store} detail={detail} />
        <Standing store={store} />
        <div class="list-holder">
          {cells.length === 0 && session ? (
            <EmptySession session={session} />
          ) : (
            <VirtualList
              items={cells}
              keyOf={(cell) => cell.number}
              render={render}
              label="Executions"
              onNearTop={() => void store.loadOlder().catch(fail)}
              onFollow={setFollows}
              handle={list}
              before={store.hasOlder.value ? <p class="quiet older">Fetching older executions…</p> : undefined}
            />
          )}
          {!follows && cells.length > 0 && (
            <button type="button" class="to-end" onClick={() => list.current?.showEnd()}>
              <Icon name="down" /> Latest
            </button>
          )}
        </div>
        <Composer
          handle={composer}
          store={store}
          detail={detail}
          interpreter={chosen}
          onInterpreter={setInterpreter}
          onRun={run}
        />
        <Announcer store={store} />
      </main>
      <Inspector store={store} detail={detail} />
      {opened !== undefined && (
        <OutputDialog session={store.id} execution={opened} onClose={() => setOpened(undefined)} />
      )}
    </>
  );
}

/** What the session has, asked again whenever something in it may have changed. One that is asleep is left asleep: to ask would wake it. */
function useDetail(store: SessionStore): SessionDetail | undefined {
  const { api } = useApp();
  const [detail, setDetail] = useState<SessionDetail>();
  const isLive = useSessionInfo(store)?.is_live === true;
  const changed = store.variablesChanged.value;
  useEffect(() => {
    if (!isLive) return;
    const leaving = new AbortController();
    api
      .session(store.id, leaving.signal)
      .then(setDetail)
      .catch(() => {});
    return () => leaving.abort();
  }, [api, store, changed, isLive]);
  return detail;
}

/** A link to one execution brings it into view once, when it is there. */
function useLinked(store: SessionStore, list: { current: ListHandle | null }, linked: number | undefined): void {
  const { tell, fail } = useApp();
  const isThere = store.cells.value.length > 0;
  useEffect(() => {
    if (linked === undefined || !isThere) return;
    store
      .reach(linked)
      .then((found) => {
        if (!found) return tell(`There is no execution ${linked} in this session.`, 'bad');
        requestAnimationFrame(() => list.current?.show(linked));
      })
      .catch(fail);
  }, [store, linked, isThere, list, tell, fail]);
}

/** Says quietly that the connection is gone or that the session was closed. */
function Standing({ store }: { store: SessionStore }) {
  const connection = store.connection.value;
  const closed = store.closed.value;
  if (connection.state === 'refused') return <p class="standing bad">{connection.error.message}</p>;
  if (closed && closed.reason !== 'stopping')
    return (
      <p class="standing">
        {closed.message || `This session was ${closed.reason}. Its history stays; running code starts it again.`}
      </p>
    );
  if (connection.state === 'lost') return <p class="standing">The server is away. This page comes back by itself.</p>;
  return null;
}

/** Tells a screen reader how executions end, and nothing of what they print. */
function Announcer({ store }: { store: SessionStore }) {
  const ended = store.ended.value;
  return (
    <p class="unseen" role="status" aria-live="polite">
      {ended && `Execution ${ended.number} ${stateInWords(ended)}`}
    </p>
  );
}

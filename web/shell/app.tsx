/** Draws the page: the sidebar, the view that the address names, and what lies over them. */

import { useEffect } from 'preact/hooks';
import { isTyping } from '../session/cell-keys.ts';
import { NoSession } from '../session/empty-session.tsx';
import { SessionView } from '../session/session-view.tsx';
import type { AppState } from '../state/app-state.ts';
import { linkTo } from '../state/route.ts';
import { AppContext, useApp } from './context.ts';
import { Help } from './help.tsx';
import { IconButton } from './icons.tsx';
import { lazy } from './lazy.tsx';
import { panes } from './panes.ts';
import { Sidebar } from './sidebar.tsx';
import { SignIn } from './sign-in.tsx';

const LabView = lazy(async () => (await import('../lab/lab-view.tsx')).LabView);
const OperateView = lazy(async () => (await import('../operate/operate-view.tsx')).OperateView);

export function App({ state }: { state: AppState }) {
  return (
    <AppContext.Provider value={state}>
      {state.needsSignIn.value ? <SignIn /> : <Workbench />}
      <NoticeBox />
    </AppContext.Provider>
  );
}

function Workbench() {
  const { route } = useApp();
  useGlobalKeys();
  return (
    <div class={`workbench view-${route.value.view}`}>
      <Sidebar />
      {panes.sidebar.value && (
        <button
          type="button"
          class="veil"
          aria-label="Close the list of sessions"
          onClick={() => {
            panes.sidebar.value = false;
          }}
        />
      )}
      <View />
      {panes.help.value && <Help />}
    </div>
  );
}

function View() {
  const { route } = useApp();
  const here = route.value;
  switch (here.view) {
    case 'session':
      return <SessionView key={here.id} id={here.id} linked={here.execution} />;
    case 'lab':
      return <LabView page={here.page} />;
    case 'operate':
      return <OperateView />;
    case 'home':
      return <Home />;
  }
}

/** Whoever opens the page wants to see what their agent does: the session that was used last. */
function Home() {
  const { sessions, isKnown } = useApp();
  const newest = sessions.value[0];
  useEffect(() => {
    if (newest && location.hash.replace(/^#\/?/, '') === '')
      location.replace(linkTo({ view: 'session', id: newest.id }));
  }, [newest]);
  return (
    <main class="page">
      <header class="bar only-narrow">
        <IconButton
          icon="menu"
          label="Sessions"
          onClick={() => {
            panes.sidebar.value = true;
          }}
        />
        <h1>Cuvette</h1>
      </header>
      {isKnown.value && !newest && <NoSession />}
    </main>
  );
}

function useGlobalKeys(): void {
  const { theme } = useApp();
  useEffect(() => {
    const show = (tab: 'variables' | 'files' | 'interpreters') => {
      const isOpen = panes.inspector.value && panes.inspectorTab.value === tab;
      panes.inspector.value = !isOpen;
      panes.inspectorTab.value = tab;
    };
    const keys: Record<string, () => void> = {
      '?': () => {
        panes.help.value = true;
      },
      v: () => show('variables'),
      f: () => show('files'),
      t: () => theme.toggle(),
      s: () => document.querySelector<HTMLElement>('.sessions a')?.focus(),
    };
    const onKey = (event: KeyboardEvent) => {
      const action = isTyping(event) ? undefined : keys[event.key];
      if (!action) return;
      event.preventDefault();
      action();
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, [theme]);
}

function NoticeBox() {
  const { notice } = useApp();
  const told = notice.value;
  return (
    <div class="notices" role="status" aria-live="polite">
      {told && <p class={`notice ${told.tone}`}>{told.text}</p>}
    </div>
  );
}

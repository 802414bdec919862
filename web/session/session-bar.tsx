/** Draws the bar above a session: its name, whether it lives, how it is confined, and what can be taken out of it. */

import type { SessionDetail } from '../api/schemas.ts';
import { useApp } from '../shell/context.ts';
import { formatCount } from '../shell/format.ts';
import { Icon, IconButton } from '../shell/icons.tsx';
import { panes } from '../shell/panes.ts';
import { nameOf } from '../state/app-state.ts';
import type { SessionStore } from '../state/session-store.ts';
import { useSessionInfo } from './use-session-info.ts';

export function SessionBar({ store, detail }: { store: SessionStore; detail: SessionDetail | undefined }) {
  const { api } = useApp();
  const session = useSessionInfo(store);
  return (
    <header class="bar">
      <IconButton
        icon="menu"
        label="Sessions"
        class="only-narrow"
        onClick={() => {
          panes.sidebar.value = true;
        }}
      />
      <h1 title={store.id}>{session ? nameOf(session) : store.id}</h1>
      {session && (
        <span class={`liveness ${session.is_live ? 'live' : ''}`}>
          <span class="dot" aria-hidden="true" />
          {session.running !== null ? `running ${session.running}` : session.is_live ? 'live' : 'asleep'}
          {session.queued > 0 && `, ${formatCount(session.queued)} waiting`}
        </span>
      )}
      {detail?.sandbox && (
        <span class="sandbox" title={`How code of this session is confined: ${detail.sandbox}`}>
          {detail.sandbox}
        </span>
      )}
      <span class="spring" />
      <details class="menu">
        <summary class="text-button">
          <Icon name="download" /> Export
        </summary>
        <div class="menu-items">
          <a href={api.exportUrl(store.id, 'ipynb')} download>
            Notebook (.ipynb)
          </a>
          <a href={api.exportUrl(store.id, 'py')} download>
            Script (.py)
          </a>
        </div>
      </details>
      <IconButton
        icon="panel"
        label="Variables, files and interpreters"
        isPressed={panes.inspector.value}
        onClick={() => {
          panes.inspector.value = !panes.inspector.value;
        }}
      />
    </header>
  );
}

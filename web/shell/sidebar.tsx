/** Lists the sessions, the newest used first, and leads to the lab and to operations. */

import { useState } from 'preact/hooks';
import type { Session } from '../api/schemas.ts';
import { nameOf } from '../state/app-state.ts';
import { linkTo, type Route } from '../state/route.ts';
import { useApp } from './context.ts';
import { formatAgo, formatCount } from './format.ts';
import { Icon, IconButton } from './icons.tsx';
import { panes } from './panes.ts';

const FEW = 12;

export function Sidebar() {
  const { api, sessions, route, theme, connection, fail } = useApp();
  const [word, setWord] = useState('');
  const here = route.value;
  const all = sessions.value;
  const shown = all.filter((session) => `${nameOf(session)} ${session.id}`.toLowerCase().includes(word.toLowerCase()));

  function create(): void {
    api
      .createSession()
      .then(({ id }) => {
        location.hash = linkTo({ view: 'session', id });
      })
      .catch(fail);
  }

  return (
    <nav class={`sidebar ${panes.sidebar.value ? 'open' : ''}`} aria-label="Sessions">
      <header>
        <a class="brand" href={linkTo({ view: 'home' })}>
          <Mark /> Cuvette
        </a>
        <IconButton
          icon={theme.isDark.value ? 'sun' : 'moon'}
          label={theme.isDark.value ? 'Light' : 'Dark'}
          onClick={theme.toggle}
        />
        <IconButton
          icon="close"
          label="Close the list of sessions"
          class="only-narrow"
          onClick={() => {
            panes.sidebar.value = false;
          }}
        />
      </header>
      <div class="sidebar-title">
        <h2>Sessions</h2>
        <IconButton icon="plus" label="New session" onClick={create} />
      </div>
      {all.length > FEW && (
        <input
          type="search"
          class="filter"
          placeholder="Find a session"
          aria-label="Find a session"
          value={word}
          onInput={(event) => setWord(event.currentTarget.value)}
        />
      )}
      <ul class="sessions">
        {shown.map((session) => (
          <Entry key={session.id} session={session} isHere={here.view === 'session' && here.id === session.id} />
        ))}
      </ul>
      <footer>
        <Place to={{ view: 'lab' }} icon="flask" title="Lab" isHere={here.view === 'lab'} />
        <Place to={{ view: 'operate' }} icon="gauge" title="Operate" isHere={here.view === 'operate'} />
        <button
          type="button"
          class="place"
          onClick={() => {
            panes.help.value = true;
          }}
        >
          <Icon name="keys" /> Keyboard <kbd>?</kbd>
        </button>
        <p class="connection" role="status">
          {connection.value.state === 'lost' && 'The server is away; trying again.'}
        </p>
      </footer>
    </nav>
  );
}

function Entry({ session, isHere }: { session: Session; isHere: boolean }) {
  const { running, is_live, executions, used_at } = session;
  const state = running !== null ? 'running' : is_live ? 'live' : 'asleep';
  return (
    <li>
      <a
        href={linkTo({ view: 'session', id: session.id })}
        aria-current={isHere ? 'page' : undefined}
        onClick={() => {
          panes.sidebar.value = false;
        }}
      >
        <span class={`dot ${state}`} title={state} />
        <span class="name">{nameOf(session)}</span>
        <span class="facts">
          <span class="unseen">{state}, </span>
          {formatCount(executions)} <span class="unseen">executions</span>
          <time dateTime={used_at}>{formatAgo(used_at, Date.now())}</time>
        </span>
      </a>
    </li>
  );
}

interface PlaceProps {
  to: Route;
  icon: 'flask' | 'gauge';
  title: string;
  isHere: boolean;
}

function Place({ to, icon, title, isHere }: PlaceProps) {
  return (
    <a
      class="place"
      href={linkTo(to)}
      aria-current={isHere ? 'page' : undefined}
      onClick={() => {
        panes.sidebar.value = false;
      }}
    >
      <Icon name={icon} /> {title}
    </a>
  );
}

/** A cuvette with light passing through it. */
function Mark() {
  return (
    <svg class="mark" viewBox="0 0 20 20" width="20" height="20" aria-hidden="true">
      <path class="beam" d="M0 9.2h20v1.6H0z" />
      <path class="glass" d="M5.5 2.5h9M6.5 2.5v13a2 2 0 0 0 2 2h3a2 2 0 0 0 2-2v-13" />
      <path class="liquid" d="M7.2 7.5h5.6v8a1.3 1.3 0 0 1-1.3 1.3h-3a1.3 1.3 0 0 1-1.3-1.3z" />
    </svg>
  );
}

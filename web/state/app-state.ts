/** Makes what the whole page shares: the list of sessions, the route, the theme, who is signed in, and short notices. */

import { computed, type Signal, signal } from '@preact/signals';
import { type Api, createApi } from '../api/client.ts';
import { type Connection, follow, type SidebarEvent, sidebarEventSchema } from '../api/events.ts';
import type { Session } from '../api/schemas.ts';
import { createRoute, type Route } from './route.ts';
import { createTheme, type Theme } from './theme.ts';

export interface Notice {
  text: string;
  tone: 'plain' | 'bad';
}

export interface AppState {
  api: Api;
  route: Signal<Route>;
  theme: Theme;
  sessions: Signal<readonly Session[]>;
  /** Whether the list has come. */
  isKnown: Signal<boolean>;
  connection: Signal<Connection>;
  needsSignIn: Signal<boolean>;
  notice: Signal<Notice | undefined>;
  /** Shows a sentence for some seconds, and to screen readers. */
  tell(text: string, tone?: Notice['tone']): void;
  /** Tells why something failed; what was cancelled is no failure. */
  fail(error: unknown): void;
  signedIn(): void;
}

const NOTICE_TIME = 6_000;

export function createAppState(base: string): AppState {
  const needsSignIn = signal(false);
  const api = createApi(base, () => {
    needsSignIn.value = true;
  });
  const byId = signal<ReadonlyMap<string, Session>>(new Map());
  const isKnown = signal(false);
  const connection = signal<Connection>({ state: 'connecting' });
  const notice = signal<Notice | undefined>(undefined);
  let timer = 0;
  let following = new AbortController();

  function start(): void {
    following.abort();
    following = new AbortController();
    const follows = follow({
      api,
      path: 'events',
      schema: sidebarEventSchema,
      onEvent: apply,
      onConnection: (next) => {
        connection.value = next;
      },
      signal: following.signal,
    });
    follows.catch((error: unknown) => console.error(error));
  }

  function apply(event: SidebarEvent): void {
    if (event.type === 'sessions') {
      byId.value = new Map(event.sessions.map((session) => [session.id, session]));
      isKnown.value = true;
      return;
    }
    const next = new Map(byId.value);
    if (event.type === 'session') next.set(event.session.id, event.session);
    else next.delete(event.id);
    byId.value = next;
  }

  function tell(text: string, tone: Notice['tone'] = 'plain'): void {
    clearTimeout(timer);
    notice.value = { text, tone };
    timer = window.setTimeout(() => {
      notice.value = undefined;
    }, NOTICE_TIME);
  }

  start();
  return {
    api,
    route: createRoute(),
    theme: createTheme(),
    sessions: computed(() => [...byId.value.values()].sort((a, b) => b.used_at.localeCompare(a.used_at))),
    isKnown,
    connection,
    needsSignIn,
    notice,
    tell,
    fail(error) {
      if (error instanceof DOMException && error.name === 'AbortError') return;
      tell(error instanceof Error ? error.message : String(error), 'bad');
    },
    signedIn() {
      needsSignIn.value = false;
      start();
    },
  };
}

/** What a person calls a session by: its own name, or the beginning of its id. */
export function nameOf(session: Pick<Session, 'id' | 'names' | 'is_default'>): string {
  const [name] = session.names;
  if (name) return name.replace(/^entity:/, '');
  return session.is_default ? 'Default session' : session.id.slice(0, 8);
}

/** Finds what is known of a session: what the list of sessions tells, which is always current, or else what its own stream began with. */

import type { Session } from '../api/schemas.ts';
import { useApp } from '../shell/context.ts';
import type { SessionStore } from '../state/session-store.ts';

export function useSessionInfo(store: SessionStore): Session | undefined {
  const { sessions } = useApp();
  const told = store.session.value;
  // A session may be opened as `default`, and is listed by its id.
  return sessions.value.find(({ id }) => id === (told?.id ?? store.id)) ?? told;
}

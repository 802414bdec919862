/** Opens a session in which an earlier server has left running code, so that this server takes it up; others are only looked at. */

import type { SeenSession } from '../../sessions/seen-session.ts';
import type { Sessions } from '../../sessions/sessions.ts';
import { seenSession } from './session-info.ts';

export async function takeUpInterrupted(sessions: Sessions, path: string): Promise<SeenSession> {
  const seen = seenSession(sessions, path);
  if (!seen.history.isInterrupted()) return seen;
  await sessions.use(seen.id, () => {}).catch(() => {}); // Where there is no room for it, its record is told as it is.
  return seenSession(sessions, seen.id);
}

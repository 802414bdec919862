/** Lists what runs code in a session, with its state, and restarts it. */

import { useState } from 'preact/hooks';
import type { Interpreter, SessionDetail } from '../api/schemas.ts';
import { useApp } from '../shell/context.ts';
import { Icon } from '../shell/icons.tsx';
import type { SessionStore } from '../state/session-store.ts';

export function Interpreters({ store, detail }: { store: SessionStore; detail: SessionDetail | undefined }) {
  const { api, tell, fail } = useApp();
  if (!detail) return <p class="quiet">This session is asleep. Running code wakes it.</p>;
  const restart = ({ name, title }: Interpreter) =>
    api
      .restart(store.id, name)
      .then(() => tell(`${title || name} is restarted: its variables are gone.`))
      .catch(fail);
  return (
    <ul class="interpreters">
      {detail.interpreters.map((interpreter) => (
        <li key={interpreter.name}>
          <div>
            <span class="name">{interpreter.title || interpreter.name}</span>
            <span class="type">
              {interpreter.state}
              {interpreter.version && `, ${interpreter.version}`}
              {interpreter.pid !== null && `, pid ${interpreter.pid}`}
            </span>
          </div>
          {interpreter.is_stateful && interpreter.state !== 'not started' && (
            <Restart onRestart={() => void restart(interpreter)} />
          )}
        </li>
      ))}
    </ul>
  );
}

/** Asks once more in place: what is lost cannot be brought back. */
function Restart({ onRestart }: { onRestart(): void }) {
  const [isAsked, setAsked] = useState(false);
  return (
    <button
      type="button"
      class={isAsked ? 'text-button danger' : 'text-button'}
      onBlur={() => setAsked(false)}
      onClick={() => {
        if (isAsked) onRestart();
        setAsked(!isAsked);
      }}
    >
      <Icon name="again" /> {isAsked ? 'Lose its variables?' : 'Restart'}
    </button>
  );
}

/** Draws the pane beside a session: its variables, its files, its interpreters, one at a time. */

import type { ComponentChildren } from 'preact';
import type { SessionDetail } from '../api/schemas.ts';
import { IconButton } from '../shell/icons.tsx';
import { panes } from '../shell/panes.ts';
import type { SessionStore } from '../state/session-store.ts';
import { Files } from './files.tsx';
import { Interpreters } from './interpreters.tsx';
import { Variables } from './variables.tsx';

const TABS = [
  ['variables', 'Variables'],
  ['files', 'Files'],
  ['interpreters', 'Interpreters'],
] as const;

export function Inspector({ store, detail }: { store: SessionStore; detail: SessionDetail | undefined }) {
  if (!panes.inspector.value) return null;
  const chosen = panes.inspectorTab.value;
  const contents: Record<typeof chosen, ComponentChildren> = {
    variables: <Variables store={store} detail={detail} />,
    files: <Files store={store} />,
    interpreters: <Interpreters store={store} detail={detail} />,
  };
  const move = (step: number) => {
    const at = TABS.findIndex(([name]) => name === chosen);
    const next = TABS[(at + step + TABS.length) % TABS.length];
    if (!next) return;
    panes.inspectorTab.value = next[0];
    requestAnimationFrame(() => document.getElementById(`tab-${next[0]}`)?.focus());
  };
  return (
    <aside class="inspector" aria-label="Inspector">
      <div class="tabs">
        <div role="tablist" aria-label="Inspector">
          {TABS.map(([name, title]) => (
            <button
              key={name}
              id={`tab-${name}`}
              type="button"
              role="tab"
              aria-selected={name === chosen}
              aria-controls="inspector-panel"
              tabIndex={name === chosen ? 0 : -1}
              onClick={() => {
                panes.inspectorTab.value = name;
              }}
              onKeyDown={({ key }) => {
                if (key === 'ArrowRight') move(1);
                if (key === 'ArrowLeft') move(-1);
              }}
            >
              {title}
            </button>
          ))}
        </div>
        <IconButton
          icon="close"
          label="Close the inspector"
          class="only-narrow"
          onClick={() => {
            panes.inspector.value = false;
          }}
        />
      </div>
      <div id="inspector-panel" class="panel" role="tabpanel" aria-labelledby={`tab-${chosen}`}>
        {contents[chosen]}
      </div>
    </aside>
  );
}

/** Lists the variables of a stateful interpreter; one of them opens as a table, a tree or text. */

import { useState } from 'preact/hooks';
import type { SessionDetail, Variable } from '../api/schemas.ts';
import { useApp } from '../shell/context.ts';
import { formatBytes, formatCount } from '../shell/format.ts';
import { Icon } from '../shell/icons.tsx';
import { lazy } from '../shell/lazy.tsx';
import { useFetched } from '../shell/use-fetched.ts';
import type { SessionStore } from '../state/session-store.ts';

const ValueDialog = lazy(async () => (await import('./value-dialog.tsx')).ValueDialog);

export function Variables({ store, detail }: { store: SessionStore; detail: SessionDetail | undefined }) {
  const { api } = useApp();
  const stateful = (detail?.interpreters ?? []).filter(({ is_stateful }) => is_stateful);
  const [chosen, setChosen] = useState<string>();
  const [word, setWord] = useState('');
  const [opened, setOpened] = useState<string>();
  const interpreter = chosen ?? stateful.find(({ state }) => state !== 'not started')?.name ?? stateful[0]?.name;
  const isStarted = stateful.some(({ name, state }) => name === interpreter && state !== 'not started');
  const changed = store.variablesChanged.value;
  const { value: variables, problem } = useFetched(
    async (signal) => (interpreter && isStarted ? api.variables(store.id, interpreter, signal) : []),
    [api, store, interpreter, isStarted, changed],
  );

  if (!detail) return <p class="quiet">This session is asleep. Running code wakes it.</p>;
  if (stateful.length === 0) return <p class="quiet">No interpreter of this session keeps variables.</p>;
  const shown = (variables ?? []).filter(({ name }) => name.toLowerCase().includes(word.toLowerCase()));
  return (
    <>
      {stateful.length > 1 && (
        <select aria-label="Interpreter" value={interpreter} onChange={(e) => setChosen(e.currentTarget.value)}>
          {stateful.map(({ name, title }) => (
            <option key={name} value={name}>
              {title || name}
            </option>
          ))}
        </select>
      )}
      {(variables?.length ?? 0) > 8 && (
        <input
          type="search"
          class="filter"
          placeholder="Filter by name"
          aria-label="Filter by name"
          value={word}
          onInput={(event) => setWord(event.currentTarget.value)}
        />
      )}
      {problem && <p class="quiet">{problem}</p>}
      {variables?.length === 0 && !problem && (
        <p class="quiet">Variables appear here once code of this session has made some.</p>
      )}
      <ul class="variables">
        {shown.map((variable) => (
          <li key={variable.name}>
            <button type="button" onClick={() => setOpened(variable.name)}>
              <span class="name">{variable.name}</span>
              <span class="type">
                {isTable(variable) && <Icon name="table" />}
                {describe(variable)}
              </span>
              {variable.preview && <span class="preview">{variable.preview.slice(0, 160)}</span>}
            </button>
          </li>
        ))}
      </ul>
      {opened !== undefined && interpreter && (
        <ValueDialog store={store} interpreter={interpreter} path={opened} onClose={() => setOpened(undefined)} />
      )}
    </>
  );
}

function isTable({ type }: Variable): boolean {
  return /DataFrame|Series|ndarray|Table|Tensor/.test(type);
}

function describe({ type, shape, length, bytes }: Variable): string {
  const size = shape?.map(formatCount).join(' × ') ?? (length === undefined ? undefined : formatCount(length));
  return [type, size, bytes ? formatBytes(bytes) : undefined].filter(Boolean).join(', ');
}

/** Opens one variable: as a table that is paged through, as a tree that unfolds, or as text. */

import { useState } from 'preact/hooks';
import type { Tree } from '../api/schemas.ts';
import { useApp } from '../shell/context.ts';
import { Dialog } from '../shell/dialog.tsx';
import { formatCount } from '../shell/format.ts';
import { Icon } from '../shell/icons.tsx';
import { Scrolling } from '../shell/scrolling.tsx';
import { useFetched } from '../shell/use-fetched.ts';
import type { SessionStore } from '../state/session-store.ts';
import { StaticText } from '../terminal/static-text.tsx';
import { DataTable } from './data-table.tsx';

interface ValueProps {
  store: SessionStore;
  interpreter: string;
  path: string;
}

export function ValueDialog({ onClose, ...value }: ValueProps & { onClose(): void }) {
  return (
    <Dialog title={value.path} onClose={onClose} class="wide">
      <ValueView {...value} />
    </Dialog>
  );
}

/** Rows that are asked for before it is known whether there are any. */
const FIRST = 100;

function ValueView({ store, interpreter, path }: ValueProps) {
  const { api } = useApp();
  const changed = store.variablesChanged.value;
  const { value, problem } = useFetched(
    (signal) => api.variable(store.id, interpreter, path, { offset: 0, limit: FIRST, columns: [0, 50] }, signal),
    [api, store, interpreter, path, changed],
  );
  if (problem && !value) return <p class="quiet bad">{problem}</p>;
  if (!value) return <p class="quiet">Looking…</p>;
  if (value.kind === 'text')
    return (
      <Scrolling class="whole-output" label={value.type}>
        <StaticText text={value.text} />
      </Scrolling>
    );
  if (value.kind === 'tree') return <TreeView tree={value} store={store} interpreter={interpreter} path={path} />;
  return (
    <DataTable
      first={value}
      load={(query, signal) => api.variable(store.id, interpreter, path, query, signal)}
      version={changed}
    />
  );
}

function TreeView({ tree, store, interpreter, path }: ValueProps & { tree: Tree }) {
  return (
    <Scrolling class="whole-output tree" label={tree.type}>
      <p class="quiet">
        {tree.type}, {formatCount(tree.count)} items
      </p>
      <Branch items={tree.items} store={store} interpreter={interpreter} path={path} />
      {tree.count > tree.items.length && (
        <p class="quiet">The first {formatCount(tree.items.length)} are shown. Look at others by code.</p>
      )}
    </Scrolling>
  );
}

function Branch({ items, ...rest }: ValueProps & { items: Tree['items'] }) {
  return (
    <ul>
      {items.map((item) => (
        <li key={item.key}>
          <Item item={item} {...rest} />
        </li>
      ))}
    </ul>
  );
}

function Item({ item, store, interpreter }: ValueProps & { item: Tree['items'][number] }) {
  const [isOpen, setOpen] = useState(false);
  const line = (
    <>
      <span class="name">{item.key}</span> <span class="type">{item.type}</span>{' '}
      <span class="preview">{item.preview}</span>
    </>
  );
  if (!item.has_children) return <span class="leaf">{line}</span>;
  return (
    <>
      <button
        type="button"
        class={`twig ${isOpen ? 'open' : ''}`}
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
      >
        <Icon name="chevron" />
        {line}
      </button>
      {isOpen && <Children store={store} interpreter={interpreter} path={item.path} />}
    </>
  );
}

function Children({ store, interpreter, path }: ValueProps) {
  const { api } = useApp();
  const { value, problem } = useFetched(
    (signal) => api.variable(store.id, interpreter, path, { offset: 0, limit: FIRST }, signal),
    [api, store, interpreter, path],
  );
  if (problem) return <p class="quiet bad">{problem}</p>;
  if (!value) return null;
  if (value.kind === 'tree') return <Branch items={value.items} store={store} interpreter={interpreter} path={path} />;
  if (value.kind === 'text') return <StaticText text={value.text} />;
  return (
    <DataTable
      first={value}
      load={(query, signal) => api.variable(store.id, interpreter, path, query, signal)}
      version={0}
    />
  );
}

/** Lists the files of a session's workspace: to look at, to download, and to drop others in. */

import { useState } from 'preact/hooks';
import type { Entry } from '../api/schemas.ts';
import { useApp } from '../shell/context.ts';
import { formatAgo, formatBytes } from '../shell/format.ts';
import { Icon } from '../shell/icons.tsx';
import { lazy } from '../shell/lazy.tsx';
import { useFetched } from '../shell/use-fetched.ts';
import type { SessionStore } from '../state/session-store.ts';

const FileDialog = lazy(async () => (await import('./file-dialog.tsx')).FileDialog);

export function Files({ store }: { store: SessionStore }) {
  const { api, tell, fail } = useApp();
  const [path, setPath] = useState('');
  const [isOver, setOver] = useState(false);
  const [sent, setSent] = useState(0);
  const [opened, setOpened] = useState<{ path: string; entry: Entry }>();
  const { value: folder, problem } = useFetched(
    (signal) => api.folder(store.id, path, signal),
    [api, store, path, store.filesChanged.value, sent],
  );

  async function send(files: FileList | null | undefined): Promise<void> {
    for (const file of files ?? []) {
      tell(`Uploading ${file.name}, ${formatBytes(file.size)}…`);
      await api.upload(store.id, joined(path, file.name), file);
      tell(`${file.name} is in the session's folder.`);
      setSent((count) => count + 1);
    }
  }

  const entries = [...(folder?.entries ?? [])].sort(
    (a, b) => a.kind.localeCompare(b.kind) * -1 || a.name.localeCompare(b.name),
  );
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the button below does the same without a mouse.
    <div
      class={`files ${isOver ? 'over' : ''}`}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        send(event.dataTransfer?.files).catch(fail);
      }}
    >
      <div class="files-bar">
        <Crumbs path={path} onPath={setPath} />
        <label class="text-button">
          <Icon name="upload" /> Upload
          <input
            type="file"
            multiple
            class="unseen"
            onChange={({ currentTarget }) => {
              send(currentTarget.files).catch(fail);
            }}
          />
        </label>
      </div>
      {problem && <p class="quiet bad">{problem}</p>}
      {folder && entries.length === 0 && <p class="quiet">No files here. Drop some, or let code write them.</p>}
      <ul class="entries">
        {entries.map((entry) => (
          <li key={entry.name}>
            <button
              type="button"
              onClick={() => {
                const its = joined(path, entry.name);
                if (entry.kind === 'folder') setPath(its);
                else setOpened({ path: its, entry });
              }}
            >
              <Icon name={entry.kind === 'folder' ? 'folder' : 'file'} />
              <span class="name">{entry.name}</span>
              <span class="type">
                {entry.kind === 'file' && entry.size !== null && formatBytes(entry.size)}
                {entry.modified_at && (
                  <time dateTime={entry.modified_at}>{formatAgo(entry.modified_at, Date.now())}</time>
                )}
              </span>
            </button>
          </li>
        ))}
      </ul>
      {folder?.is_cut && <p class="quiet">There are more files than are listed.</p>}
      {opened && (
        <FileDialog session={store.id} path={opened.path} entry={opened.entry} onClose={() => setOpened(undefined)} />
      )}
    </div>
  );
}

function Crumbs({ path, onPath }: { path: string; onPath(path: string): void }) {
  const parts = path === '' ? [] : path.split('/');
  return (
    <nav class="crumbs" aria-label="Folder">
      <button type="button" onClick={() => onPath('')}>
        workspace
      </button>
      {parts.map((part, i) => (
        <button
          key={parts.slice(0, i + 1).join('/')}
          type="button"
          onClick={() => onPath(parts.slice(0, i + 1).join('/'))}
        >
          / {part}
        </button>
      ))}
    </nav>
  );
}

function joined(folder: string, name: string): string {
  return folder === '' ? name : `${folder}/${name}`;
}

/** Shows the beginning of a file, or the picture that it is, with its download. */

import type { Entry } from '../api/schemas.ts';
import { useApp } from '../shell/context.ts';
import { Dialog } from '../shell/dialog.tsx';
import { formatBytes } from '../shell/format.ts';
import { Icon } from '../shell/icons.tsx';
import { Scrolling } from '../shell/scrolling.tsx';
import { useFetched } from '../shell/use-fetched.ts';
import { StaticText } from '../terminal/static-text.tsx';

interface FileDialogProps {
  session: string;
  path: string;
  entry: Entry;
  onClose(): void;
}

const PREVIEW = 100_000;

export function FileDialog({ session, path, entry, onClose }: FileDialogProps) {
  const { api } = useApp();
  const isPicture = /\.(png|jpe?g|gif|webp|svg)$/i.test(path);
  return (
    <Dialog title={entry.name} onClose={onClose} class="wide">
      <p class="file-facts">
        <span class="quiet">{entry.size !== null && formatBytes(entry.size)}</span>
        <a class="text-button" href={api.fileUrl(session, path, true)} download={entry.name}>
          <Icon name="download" /> Download
        </a>
      </p>
      {isPicture ? (
        <img class="file-picture" src={api.fileUrl(session, path)} alt={entry.name} />
      ) : (
        <TextPreview session={session} path={path} size={entry.size ?? 0} />
      )}
    </Dialog>
  );
}

function TextPreview({ session, path, size }: { session: string; path: string; size: number }) {
  const { api } = useApp();
  const { value, problem } = useFetched(
    async (signal) => {
      if (size === 0) return '';
      const range = { range: `bytes=0-${PREVIEW - 1}` };
      const response = await api.send(api.fileUrl(session, path), { headers: range, signal });
      return decode(new Uint8Array(await response.arrayBuffer()));
    },
    [api, session, path, size],
  );
  if (problem) return <p class="quiet bad">{problem}</p>;
  if (value === undefined) return <p class="quiet">Looking…</p>;
  if (value === null) return <p class="quiet">This is no text. Download it to look at it.</p>;
  return (
    <>
      <Scrolling class="whole-output" label="Text of the file">
        <StaticText text={value} />
      </Scrolling>
      {size > PREVIEW && <p class="quiet">The first {formatBytes(PREVIEW)} are shown.</p>}
    </>
  );
}

function decode(bytes: Uint8Array): string | null {
  if (bytes.includes(0)) return null;
  return new TextDecoder().decode(bytes);
}

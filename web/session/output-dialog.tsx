/** Shows the whole text of an execution, however long: pages of it are fetched as they are scrolled to, and the server searches it. */

import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Matches } from '../api/schemas.ts';
import { useApp } from '../shell/context.ts';
import { Dialog } from '../shell/dialog.tsx';
import { formatCount } from '../shell/format.ts';
import { Icon } from '../shell/icons.tsx';
import { StaticText } from '../terminal/static-text.tsx';

interface OutputDialogProps {
  session: string;
  execution: number;
  onClose(): void;
}

interface Page {
  offset: number;
  text: string;
}

/** Characters. */
const PAGE = 60_000;
/** Pages that are kept; those farthest from what is read are dropped. */
const MOST_PAGES = 5;

export function OutputDialog({ session, execution, onClose }: OutputDialogProps) {
  const { api, fail } = useApp();
  const [pages, setPages] = useState<Page[]>([]);
  const [length, setLength] = useState(0);
  const [matches, setMatches] = useState<Matches & { word: string }>();
  const box = useRef<HTMLElement>(null);
  const loading = useRef(false);
  /** Keeps what is read where it is while a page comes in above it. */
  const fromBottom = useRef<number>(undefined);

  async function load(offset: number, how: 'before' | 'after' | 'alone'): Promise<void> {
    if (loading.current) return;
    loading.current = true;
    try {
      const { text, length: total, offset: at } = await api.outputPage(session, execution, offset, PAGE);
      setLength(total);
      const page = { offset: at, text };
      if (how === 'before' && box.current) fromBottom.current = box.current.scrollHeight - box.current.scrollTop;
      setPages((known) => {
        if (how === 'alone') return [page];
        return how === 'before' ? [page, ...known].slice(0, MOST_PAGES) : [...known, page].slice(-MOST_PAGES);
      });
      if (how === 'alone') box.current?.scrollTo(0, 0);
    } catch (error) {
      fail(error);
    } finally {
      loading.current = false;
    }
  }

  useEffect(() => {
    void load(0, 'alone');
  }, [session, execution]);

  useLayoutEffect(() => {
    if (!box.current || fromBottom.current === undefined) return;
    box.current.scrollTop = box.current.scrollHeight - fromBottom.current;
    fromBottom.current = undefined;
  }, [pages]);

  const first = pages[0];
  const last = pages.at(-1);
  const end = last ? last.offset + last.text.length : 0;

  function onScroll(): void {
    const element = box.current;
    if (!element || !first) return;
    if (element.scrollTop + element.clientHeight > element.scrollHeight - 600 && end < length) void load(end, 'after');
    else if (element.scrollTop < 400 && first.offset > 0) void load(Math.max(0, first.offset - PAGE), 'before');
  }

  async function search(word: string): Promise<void> {
    if (word === '') return setMatches(undefined);
    const found = await api.searchOutput(session, execution, word);
    setMatches({ ...found, word });
  }

  return (
    <Dialog title={`Output of execution ${execution}`} onClose={onClose} class="wide">
      <form
        class="search"
        onSubmit={(event) => {
          event.preventDefault();
          const word = new FormData(event.currentTarget).get('word');
          search(typeof word === 'string' ? word : '').catch(fail);
        }}
      >
        <Icon name="search" />
        <input name="word" type="search" placeholder="Search all of it" aria-label="Search all of it" />
        <span class="quiet">
          {formatCount(length)} characters{first && length > 0 && `, ${Math.round((100 * end) / length)} % read`}
        </span>
        <button type="button" class="text-button" onClick={() => void load(0, 'alone')}>
          Start
        </button>
        <button type="button" class="text-button" onClick={() => void load(Math.max(0, length - PAGE), 'alone')}>
          End
        </button>
      </form>
      {matches && (
        <ul class="matches" aria-label={`Lines with ${matches.word}`}>
          {matches.matches.map(({ offset, line }) => (
            <li key={offset}>
              <button type="button" onClick={() => void load(Math.max(0, offset - 200), 'alone')}>
                {line.slice(0, 300)}
              </button>
            </li>
          ))}
          {matches.matches.length === 0 && <li class="quiet">Nothing has “{matches.word}” in it.</li>}
          {matches.has_more && <li class="quiet">There are more: look for something longer.</li>}
        </ul>
      )}
      <section ref={box} class="whole-output" onScroll={onScroll} tabIndex={0} aria-label="Text">
        {pages.map(({ offset, text }) => (
          <StaticText key={offset} text={text} />
        ))}
      </section>
    </Dialog>
  );
}

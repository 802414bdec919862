/** Draws text with terminal colours that does not change any more: a traceback, a representation, a preview. */

import { useMemo } from 'preact/hooks';
import { createTerminal } from './terminal.ts';
import { TerminalView } from './terminal-view.tsx';

export function StaticText({ text, isError = false }: { text: string; isError?: boolean }) {
  const terminal = useMemo(() => {
    const made = createTerminal();
    made.write(text.replace(/\n$/, ''), isError);
    return made;
  }, [text, isError]);
  return <TerminalView terminal={terminal} />;
}

/** Draws code that is read, not edited: coloured once its grammar is there, folded where it is long, with the line of an error marked. */

import { useEffect, useState } from 'preact/hooks';
import type { Piece } from '../editor/highlight.ts';
import { formatCount } from '../shell/format.ts';

interface CodeViewProps {
  code: string;
  language: string;
  /** From 1. */
  errorLine?: number | undefined;
}

const FOLDED_LINES = 24;
const MOST_CHARACTERS = 20_000;

export function CodeView({ code, language, errorLine }: CodeViewProps) {
  const [isOpen, setOpen] = useState(false);
  const lines = code.split('\n');
  const isLong = lines.length > FOLDED_LINES + 4 || code.length > MOST_CHARACTERS;
  const shown = isLong && !isOpen ? lines.slice(0, FOLDED_LINES).join('\n').slice(0, MOST_CHARACTERS) : code;
  const pieces = useHighlighted(shown, language);
  return (
    <div class="code">
      <pre>
        <code>
          {(pieces ?? plain(shown)).map((line, index) => (
            <div key={index} class={index + 1 === errorLine ? 'line error-line' : 'line'}>
              {line.map(({ text, classes }, at) =>
                classes ? (
                  <span key={at} class={classes}>
                    {text}
                  </span>
                ) : (
                  text
                ),
              )}
              {'\n'}
            </div>
          ))}
        </code>
      </pre>
      {isLong && (
        <button type="button" class="fold" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {isOpen ? 'Show less' : `Show all ${formatCount(lines.length)} lines`}
        </button>
      )}
    </div>
  );
}

function plain(code: string): Piece[][] {
  return code.split('\n').map((text) => [{ text, classes: '' }]);
}

function useHighlighted(code: string, language: string): Piece[][] | undefined {
  const [done, setDone] = useState<{ code: string; pieces: Piece[][] | undefined }>();
  useEffect(() => {
    let isGone = false;
    import('../editor/highlight.ts')
      .then(({ highlight }) => highlight(code, language))
      .then((pieces) => {
        if (!isGone) setDone({ code, pieces });
      })
      .catch(() => {});
    return () => {
      isGone = true;
    };
  }, [code, language]);
  return done?.code === code ? done.pieces : undefined;
}

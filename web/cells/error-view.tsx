/** Draws an error: what it is in one line, and the traceback folded below it. Also finds the line of the cell that it came from. */

import type { ErrorOutput } from '../api/schemas.ts';
import { StaticText } from '../terminal/static-text.tsx';

export function ErrorView({ output }: { output: ErrorOutput }) {
  const { ename, evalue, traceback } = output;
  return (
    <div class="error-output">
      <p class="error-name">
        <strong>{ename}</strong>
        {evalue && <span>{evalue.length > 600 ? `${evalue.slice(0, 600)}…` : evalue}</span>}
      </p>
      {traceback.length > 0 && (
        <details>
          <summary>Traceback</summary>
          <StaticText text={traceback.join('\n')} />
        </details>
      )}
    </div>
  );
}

/** Frames of the cell's own code, as the builtin Python and IPython name them. */
const FRAMES = [
  /File "<cell \d+>", line (\d+)/g,
  /Cell In ?\[\d+\], line (\d+)/g,
  /<ipython-input-[^>]*>", line (\d+)/g,
];
const COLOURS = /\x1b\[[0-9;]*m/g;

/** The last frame that is in the cell; nothing if the error came from elsewhere. */
export function errorLineOf({ traceback }: ErrorOutput): number | undefined {
  const text = traceback.join('\n').replace(COLOURS, '');
  for (const pattern of FRAMES) {
    const found = [...text.matchAll(pattern)].at(-1)?.[1];
    if (found) return Number(found);
  }
  return undefined;
}

/** Draws a terminal: a `pre` whose blocks are drawn again only when a line of them changed. */

import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import type { Line, Run } from './line.ts';
import type { Colour, Style } from './style.ts';
import { PLAIN } from './style.ts';
import type { Block, Terminal } from './terminal.ts';

export function TerminalView({ terminal }: { terminal: Terminal }) {
  return (
    <pre class="terminal">
      {terminal.blocks.map((block, index, all) => (
        <BlockView key={block.id} block={block} version={block.version} isLast={index === all.length - 1} />
      ))}
    </pre>
  );
}

function BlockView({ block, version, isLast }: { block: Block; version: number; isLast: boolean }) {
  return useMemo(() => <div>{piecesOf(shownOf(block.lines, isLast))}</div>, [block, version, isLast]);
}

/** Text mostly ends with a line break, after which there is no line yet. */
function shownOf(lines: readonly Line[], isLast: boolean): readonly Line[] {
  return isLast && lines.length > 1 && lines.at(-1)?.length === 0 ? lines.slice(0, -1) : lines;
}

/** Adjacent plain text becomes one node, whatever number of lines it has. */
function piecesOf(lines: readonly Line[]): (string | JSX.Element)[] {
  const pieces: (string | JSX.Element)[] = [];
  let plain = '';
  lines.forEach(({ runs }, index) => {
    for (const run of runs) {
      if (run.style === PLAIN && !run.isError) {
        plain += run.text;
        continue;
      }
      if (plain) pieces.push(plain);
      plain = '';
      pieces.push(<RunView key={pieces.length} run={run} />);
    }
    if (index < lines.length - 1 || runs.length === 0) plain += '\n';
  });
  if (plain) pieces.push(plain);
  return pieces;
}

function RunView({ run: { text, style, isError } }: { run: Run }) {
  const classes = [
    isError && 'stderr',
    style.bold && 'ansi-bold',
    style.dim && 'ansi-dim',
    style.italic && 'ansi-italic',
    style.underline && 'ansi-underline',
    style.strike && 'ansi-strike',
    style.inverse && style.fg === undefined && style.bg === undefined && 'ansi-inverse',
  ].filter(Boolean);
  const { fg, bg } = coloursOf(style);
  if (typeof fg === 'number') classes.push(`ansi-fg-${fg}`);
  if (typeof bg === 'number') classes.push(`ansi-bg-${bg}`);
  const inline = {
    ...(typeof fg === 'string' && { color: fg }),
    ...(typeof bg === 'string' && { backgroundColor: bg }),
  };
  return (
    <span class={classes.join(' ')} style={inline}>
      {text}
    </span>
  );
}

function coloursOf({ fg, bg, inverse }: Style): { fg: Colour | undefined; bg: Colour | undefined } {
  return inverse && (fg !== undefined || bg !== undefined) ? { fg: bg ?? 0, bg: fg ?? 7 } : { fg, bg };
}

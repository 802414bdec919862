/** Draws one execution: who ran it and how it went, its code, its outputs in order. */

import { useEffect, useState } from 'preact/hooks';
import type { ExecutionHead } from '../api/schemas.ts';
import { RichView, type Source } from '../outputs/rich-view.tsx';
import { formatCount } from '../shell/format.ts';
import type { Cell, Part } from '../state/cell.ts';
import { TerminalView } from '../terminal/terminal-view.tsx';
import { CellHead } from './cell-head.tsx';
import { CodeView } from './code-view.tsx';
import { ErrorView, errorLineOf } from './error-view.tsx';
import { ScrollBox } from './scroll-box.tsx';

export interface CellActions {
  interrupt(number: number): void;
  runAgain(code: string, interpreter: string): void;
  edit(code: string, interpreter: string): void;
  copyLink(number: number): void;
  openOutput(number: number): void;
  refill(cell: Cell): void;
  languageOf(interpreter: string): string;
}

interface CellViewProps {
  cell: Cell;
  source: Omit<Source, 'execution'>;
  actions: CellActions;
  isLinked: boolean;
}

export function CellView({ cell, source, actions, isLinked }: CellViewProps) {
  const head = cell.head.value;
  const version = cell.version.value;
  cell.seenAt = performance.now();
  useEffect(() => {
    if (cell.isShed) actions.refill(cell);
  });
  const error = cell.parts.findLast((part) => part.kind === 'error');
  return (
    <article
      class={`cell ${stateClass(head)} ${isLinked ? 'linked' : ''}`}
      id={`execution-${cell.number}`}
      tabIndex={-1}
      data-number={cell.number}
      aria-label={`Execution ${cell.number}, ${stateInWords(head)}`}
    >
      <CellHead head={head} actions={actions} />
      <div class="cell-body">
        <CodeView
          code={head.code}
          language={actions.languageOf(head.interpreter)}
          errorLine={error?.kind === 'error' ? errorLineOf(error.output) : undefined}
        />
        <Outputs cell={cell} version={version} source={{ ...source, execution: cell.number }} actions={actions} />
        <Ending head={head} />
      </div>
    </article>
  );
}

const FIRST_PARTS = 24;
const MORE_PARTS = 48;

interface OutputsProps {
  cell: Cell;
  version: number;
  source: Source;
  actions: CellActions;
}

function Outputs({ cell, version, source, actions }: OutputsProps) {
  const [most, setMost] = useState(FIRST_PARTS);
  const hidden = cell.parts.length - most;
  if (cell.isShed) return <p class="quiet">Fetching its output…</p>;
  if (cell.parts.length === 0) return null;
  return (
    <div class="outputs">
      {cell.parts.slice(0, most).map((part) => (
        <PartView key={part.key} part={part} version={version} source={source} actions={actions} />
      ))}
      {hidden > 0 && (
        <button type="button" class="placeholder" onClick={() => setMost(most + MORE_PARTS)}>
          {formatCount(hidden)} more outputs. <span>Show {formatCount(Math.min(hidden, MORE_PARTS))}</span>
        </button>
      )}
    </div>
  );
}

const TALL = 28;

function PartView({ part, version, source, actions }: { part: Part } & Omit<OutputsProps, 'cell'>) {
  const { execution } = source;
  switch (part.kind) {
    case 'text': {
      const { terminal } = part;
      return (
        <div class="text-output">
          {terminal.dropped > 0 && (
            <button type="button" class="above" onClick={() => actions.openOutput(execution)}>
              {formatCount(terminal.dropped)} lines above. <span>Open the whole output</span>
            </button>
          )}
          <ScrollBox label={`Output of execution ${execution}`} version={version} isTall={terminal.lineCount > TALL}>
            <TerminalView terminal={terminal} />
          </ScrollBox>
        </div>
      );
    }
    case 'rich':
      return <RichView output={part.output} source={source} />;
    case 'error':
      return <ErrorView output={part.output} />;
    case 'gap':
      return (
        <button type="button" class="above" onClick={() => actions.openOutput(execution)}>
          {formatCount(part.to - part.from)} more characters. <span>Open the whole output</span>
        </button>
      );
  }
}

function Ending({ head: { state, outcome, reason, notes = [], variables_survived } }: { head: ExecutionHead }) {
  if (state !== 'done') return null;
  const told = outcome === 'ok' || outcome === 'error' ? [] : [reason?.message ?? sentenceOf(outcome)];
  const lost = variables_survived === false && outcome !== 'ok' ? ['The variables of this interpreter are lost.'] : [];
  const sentences = [...told, ...lost, ...notes].filter((one, at, all) => one && all.indexOf(one) === at);
  if (sentences.length === 0) return null;
  return <p class={`ending ${outcome === 'ok' ? '' : 'bad'}`}>{sentences.join(' ')}</p>;
}

function sentenceOf(outcome: ExecutionHead['outcome']): string {
  if (outcome === 'timeout') return 'It ran into its time limit.';
  if (outcome === 'cancelled') return 'It was interrupted.';
  return outcome === 'died' ? 'Its interpreter died.' : '';
}

function stateClass({ state, outcome }: ExecutionHead): string {
  return state === 'done' ? (outcome ?? 'ok') : state;
}

export function stateInWords({ state, outcome }: ExecutionHead): string {
  if (state !== 'done') return state;
  return outcome === 'ok' ? 'done' : (outcome ?? 'done');
}

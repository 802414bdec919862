/** Draws the line above an execution: its number, where it came from, how it goes, and what can be done with it. */

import { useEffect, useState } from 'preact/hooks';
import type { ExecutionHead } from '../api/schemas.ts';
import { formatBytes, formatClock, formatSeconds } from '../shell/format.ts';
import { Icon, IconButton } from '../shell/icons.tsx';
import type { CellActions } from './cell-view.tsx';

const ORIGINS: Record<string, { name: string; title: string }> = {
  agent: { name: 'agent', title: 'Run by an agent, over MCP' },
  shell: { name: 'shell', title: 'Run from a shell, by cuvette run' },
  page: { name: 'you', title: 'Run from this page' },
  rest: { name: 'REST', title: 'Run by a program, over REST' },
};

export function CellHead({ head, actions }: { head: ExecutionHead; actions: CellActions }) {
  const { number, origin, interpreter, code, state } = head;
  const from = origin ? ORIGINS[origin] : undefined;
  return (
    <header class="cell-head">
      <span class="number">{number}</span>
      {from && (
        <span class={`badge ${origin}`} title={from.title}>
          {from.name}
        </span>
      )}
      <span class="interpreter">{interpreter === 'builtin' ? 'python' : interpreter}</span>
      <State head={head} />
      <span class="actions">
        {state === 'done' && (
          <>
            <IconButton icon="again" label="Run again" onClick={() => actions.runAgain(code, interpreter)} />
            <IconButton icon="edit" label="Edit and run" onClick={() => actions.edit(code, interpreter)} />
          </>
        )}
        <IconButton icon="link" label="Copy a link to this execution" onClick={() => actions.copyLink(number)} />
      </span>
      {state !== 'done' && (
        <button type="button" class="interrupt" onClick={() => actions.interrupt(number)}>
          <Icon name="stop" />
          {state === 'queued' ? 'Cancel' : 'Interrupt'}
        </button>
      )}
    </header>
  );
}

function State({ head }: { head: ExecutionHead }) {
  const { state, outcome, wall, started_at, peak, cpu, exit_code } = head;
  if (state === 'queued') return <span class="state queued">waits its turn</span>;
  if (state === 'running') return <Running since={started_at} />;
  const told = [
    started_at && `started ${formatClock(started_at)}`,
    typeof cpu === 'number' && `${formatSeconds(cpu)} of CPU`,
    typeof peak === 'number' && peak > 0 && `${formatBytes(peak)} at most`,
    typeof exit_code === 'number' && `exit code ${exit_code}`,
  ].filter(Boolean);
  return (
    <span class={`state ${outcome ?? ''}`} title={told.join(', ')}>
      {outcome !== 'ok' && outcome !== null && <strong>{outcome}</strong>}
      {wall !== null && <span>{formatSeconds(wall)}</span>}
      {started_at && <time dateTime={started_at}>{formatClock(started_at)}</time>}
    </span>
  );
}

/** Counts, so that a run that prints nothing is seen to be alive. */
function Running({ since }: { since: string | null }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 200);
    return () => clearInterval(timer);
  }, []);
  const seconds = since ? Math.max(0, (now - Date.parse(since)) / 1000) : 0;
  return (
    <span class="state running">
      <span class="pulse" aria-hidden="true" />
      running <span>{seconds < 60 ? `${seconds.toFixed(1)} s` : formatSeconds(seconds)}</span>
    </span>
  );
}

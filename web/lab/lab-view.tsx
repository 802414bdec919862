/** Draws the lab: which model is attached and what is kept of it, its tools as forms, and the evidence of verdicts, one or two beside each other. */

import { useApp } from '../shell/context.ts';
import { IconButton } from '../shell/icons.tsx';
import { panes } from '../shell/panes.ts';
import { useFetched } from '../shell/use-fetched.ts';
import { linkTo } from '../state/route.ts';
import '../styles/lab.css';
import { Holdings } from './holdings.tsx';
import { labState } from './lab-state.ts';
import { ToolRunner } from './tool-runner.tsx';
import { Verdicts } from './verdicts.tsx';

const PAGES = [
  ['', 'Model'],
  ['run', 'Run'],
  ['verdicts', 'Verdicts'],
] as const;

export function LabView({ page = '' }: { page: string | undefined }) {
  const { api } = useApp();
  const { value: tools, problem } = useFetched((signal) => api.tools(signal), [api]);
  const ofLab = tools?.filter(({ is_lab }) => is_lab);
  const name = page.split(':')[0] ?? '';
  return (
    <main class="page lab" aria-label="Lab">
      <header class="bar">
        <IconButton
          icon="menu"
          label="Sessions"
          class="only-narrow"
          onClick={() => {
            panes.sidebar.value = true;
          }}
        />
        <h1>Lab</h1>
        <nav class="subpages" aria-label="Lab">
          {PAGES.map(([path, title]) => (
            <a
              key={path}
              href={linkTo({ view: 'lab', ...(path && { page: path }) })}
              aria-current={path === name ? 'page' : undefined}
            >
              {title}
              {path === 'verdicts' && labState.records.value.length > 0 && ` (${labState.records.value.length})`}
            </a>
          ))}
        </nav>
      </header>
      <div class="lab-body">
        {problem && <p class="quiet bad">{problem}</p>}
        {ofLab?.length === 0 && (
          <p class="quiet">
            This service offers no lab. Start it with <code>--lab-endpoints demo</code> to have one.
          </p>
        )}
        {ofLab && ofLab.length > 0 && name === '' && <Holdings />}
        {ofLab && ofLab.length > 0 && name === 'run' && <ToolRunner tools={ofLab} chosen={page.split(':')[1]} />}
        {name === 'verdicts' && <Verdicts />}
      </div>
    </main>
  );
}

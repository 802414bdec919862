/** Runs a tool of the lab from a form: its progress while it runs, a way to cancel it, and what it found. */

import { useRef, useState } from 'preact/hooks';
import type { Tool, ToolAnswer } from '../api/schemas.ts';
import { useApp } from '../shell/context.ts';
import { Scrolling } from '../shell/scrolling.tsx';
import { linkTo } from '../state/route.ts';
import { StaticText } from '../terminal/static-text.tsx';
import { keepRecord, labState } from './lab-state.ts';
import { nameRecord, readRecord } from './records.ts';
import { SchemaForm } from './schema-form.tsx';
import { callTool } from './tool-call.ts';

/** Tools whose records are drawn, which therefore are always asked for. */
const DRAWN = new Set(['causality_protocol', 'sweep']);

type Run =
  | { state: 'idle' }
  | { state: 'running'; messages: readonly string[] }
  | { state: 'done'; answer: ToolAnswer; isKept: boolean }
  | { state: 'failed'; problem: string };

const MOST_MESSAGES = 200;

export function ToolRunner({ tools, chosen }: { tools: readonly Tool[]; chosen: string | undefined }) {
  const tool = tools.find(({ name }) => name === chosen) ?? tools.find(({ name }) => DRAWN.has(name)) ?? tools[0];
  if (!tool) return null;
  return (
    <div class="runner">
      <nav class="tool-list" aria-label="Tools">
        {tools.map(({ name, title }) => (
          <a
            key={name}
            href={linkTo({ view: 'lab', page: `run:${name}` })}
            aria-current={name === tool.name ? 'true' : undefined}
          >
            {title ?? name}
          </a>
        ))}
      </nav>
      <OneTool key={tool.name} tool={tool} />
    </div>
  );
}

function OneTool({ tool }: { tool: Tool }) {
  const { api } = useApp();
  const [run, setRun] = useState<Run>({ state: 'idle' });
  const cancelling = useRef<AbortController>(undefined);

  async function start(args: Record<string, unknown>): Promise<void> {
    const controller = new AbortController();
    cancelling.current = controller;
    setRun({ state: 'running', messages: [] });
    const onProgress = (message: string) =>
      setRun((now) =>
        now.state === 'running' ? { ...now, messages: [...now.messages, message].slice(-MOST_MESSAGES) } : now,
      );
    const session_name = labState.sessionName.value;
    const given = { ...args, session_name, ...(DRAWN.has(tool.name) && { include_evidence: true }) };
    try {
      const answer = await callTool(api, tool.name, given, { signal: controller.signal, onProgress });
      setRun({ state: 'done', answer, isKept: keepDrawn(answer) });
      labState.changed.value += 1;
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error);
      setRun({ state: 'failed', problem: controller.signal.aborted ? 'It was cancelled.' : problem });
    }
  }

  return (
    <section class="card tool" aria-labelledby="tool-title">
      <h2 id="tool-title">{tool.title ?? tool.name}</h2>
      <p class="quiet">{tool.description}</p>
      <SchemaForm
        schema={tool.input_schema}
        hidden={['session_name', 'include_evidence', 'report', 'prompts_file']}
        isBusy={run.state === 'running'}
        submit="Run"
        onSubmit={(args) => void start(args)}
        onProblem={(problem) => setRun({ state: 'failed', problem })}
      />
      {run.state === 'running' && (
        <div class="progress">
          <p role="status">
            <span class="pulse" aria-hidden="true" /> {run.messages.at(-1) ?? 'running'}
          </p>
          <button type="button" class="interrupt" onClick={() => cancelling.current?.abort()}>
            Cancel
          </button>
        </div>
      )}
      {run.state === 'failed' && (
        <p class="bad" role="alert">
          {run.problem}
        </p>
      )}
      {run.state === 'done' && run.isKept && (
        <p>
          <a href={linkTo({ view: 'lab', page: 'verdicts' })}>Look at its evidence</a>
        </p>
      )}
      {run.state === 'done' && <Findings answer={run.answer} />}
    </section>
  );
}

/** What it found but for the record, which is drawn elsewhere. */
function Findings({ answer }: { answer: ToolAnswer }) {
  if (answer.is_error)
    return (
      <p class="bad" role="alert">
        {answer.text}
      </p>
    );
  const { record: _, map, ...rest } = answer.structured ?? {};
  return (
    <Scrolling class="whole-output" label="What it found">
      {typeof map === 'string' && <StaticText text={map} />}
      <StaticText text={JSON.stringify(rest, undefined, 2)} />
    </Scrolling>
  );
}

function keepDrawn({ structured, is_error }: ToolAnswer): boolean {
  if (is_error || !structured?.record) return false;
  const record = readRecord(structured.record);
  keepRecord(nameRecord(record), record);
  return true;
}

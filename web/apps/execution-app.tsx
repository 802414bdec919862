/** Shows in an MCP host what `execute` answered: the code, the text with its colours, and the figures. */

import { render } from 'preact';
import * as z from 'zod/mini';
import { FrameTable } from '../outputs/frame-table.tsx';
import { readFrameTable } from '../outputs/read-table.ts';
import { formatBytes, formatSeconds } from '../shell/format.ts';
import { StaticText } from '../terminal/static-text.tsx';
import { connectToHost, type Hosted, type ToolResult } from './host.ts';
import { PlainCode } from './plain-code.tsx';
import '../styles/theme.css';
import '../styles/base.css';
import '../styles/cells.css';
import '../styles/outputs.css';
import '../styles/app.css';

const contentSchema = z.union([
  z.object({ type: z.literal('text'), text: z.string() }),
  z.object({ type: z.literal('image'), data: z.string(), mimeType: z.string() }),
]);
const answerSchema = z.object({
  execution: z.optional(z.number()),
  interpreter: z.optional(z.string()),
  outcome: z.optional(z.nullable(z.string())),
  wall_seconds: z.optional(z.nullable(z.number())),
  peak_memory_bytes: z.optional(z.nullable(z.number())),
  /** HTML of displayed tables, as code has made it. */
  html: z.optional(z.array(z.string())),
});
const IMAGE = /^image\/(png|jpeg|gif|webp|svg\+xml)$/;

function ExecutionApp({ hosted: { input, result } }: { hosted: Hosted }) {
  const code = input.value.code;
  return (
    <main class="cell">
      {result.value && <Facts result={result.value} />}
      {typeof code === 'string' && <PlainCode code={code} />}
      {result.value ? <Contents result={result.value} /> : <p class="quiet">running</p>}
    </main>
  );
}

function Facts({ result }: { result: ToolResult }) {
  const { execution, interpreter, outcome, wall_seconds, peak_memory_bytes } =
    answerSchema.safeParse(result.structuredContent ?? {}).data ?? {};
  return (
    <header class="cell-head">
      {execution !== undefined && <span class="number">{execution}</span>}
      {interpreter && <span>{interpreter === 'builtin' ? 'python' : interpreter}</span>}
      {outcome && outcome !== 'ok' && <strong class="bad">{outcome}</strong>}
      {typeof wall_seconds === 'number' && <span>{formatSeconds(wall_seconds)}</span>}
      {typeof peak_memory_bytes === 'number' && peak_memory_bytes > 0 && <span>{formatBytes(peak_memory_bytes)}</span>}
    </header>
  );
}

function Contents({ result: { content = [], structuredContent, isError = false } }: { result: ToolResult }) {
  const { html = [] } = answerSchema.safeParse(structuredContent ?? {}).data ?? {};
  return (
    <div class="outputs">
      {html.map((one, at) => (
        <Html key={at} html={one} />
      ))}
      {content.map((part, at) => {
        const { data } = contentSchema.safeParse(part);
        if (data?.type === 'text') return <StaticText key={at} text={data.text} isError={isError} />;
        if (data?.type !== 'image' || !IMAGE.test(data.mimeType)) return null;
        return (
          <span key={at} class="image">
            <img src={`data:${data.mimeType};base64,${data.data.replace(/\s/g, '')}`} alt="Figure" />
          </span>
        );
      })}
    </div>
  );
}

/** What is not a plain table is shown where nothing runs. */
function Html({ html }: { html: string }) {
  const table = readFrameTable(html);
  if (table) return <FrameTable table={table} />;
  return <iframe class="still" title="HTML output" sandbox="" srcdoc={html} />;
}

render(<ExecutionApp hosted={connectToHost('cuvette-execution')} />, document.body);

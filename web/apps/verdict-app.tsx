/** Shows in an MCP host the evidence of a verdict or of a sweep; without the record, what the answer tells of it. */

import { render } from 'preact';
import * as z from 'zod/mini';
import { readRecord } from '../lab/records.ts';
import { ReportView } from '../lab/report-view.tsx';
import { StaticText } from '../terminal/static-text.tsx';
import { connectToHost, type Hosted } from './host.ts';
import '../styles/theme.css';
import '../styles/base.css';
import '../styles/outputs.css';
import '../styles/app.css';

const answerSchema = z.object({
  verdict: z.string(),
  reason: z.string(),
  explanation: z.string(),
  limits: z.array(z.string()),
  decision_path: z.array(z.object({ condition: z.string(), matched: z.boolean(), because: z.string() })),
});

function VerdictApp({ hosted: { result } }: { hosted: Hosted }) {
  const answer = result.value?.structuredContent;
  if (!answer) return <p class="quiet">measuring</p>;
  if (answer.record) return <Drawn record={answer.record} />;
  const told = answerSchema.safeParse(answer).data;
  if (!told) return <StaticText text={JSON.stringify(answer, undefined, 2)} />;
  return (
    <main>
      <h1>
        {told.verdict}: {told.reason}
      </h1>
      <p>{told.explanation}</p>
      <ol>
        {told.decision_path.map(({ condition, matched, because }) => (
          <li key={condition}>
            {matched ? <strong>{condition}</strong> : condition} <span class="quiet">{because}</span>
          </li>
        ))}
      </ol>
      <ul>
        {told.limits.map((limit) => (
          <li key={limit}>{limit}</li>
        ))}
      </ul>
      <p class="quiet">Ask with include_evidence=true to see the evidence drawn.</p>
    </main>
  );
}

function Drawn({ record }: { record: unknown }) {
  try {
    return <ReportView record={readRecord(record)} />;
  } catch (error) {
    return <p class="bad">{error instanceof Error ? error.message : String(error)}</p>;
  }
}

render(<VerdictApp hosted={connectToHost('cuvette-verdict')} />, document.body);

/** Renders a protocol run as one self-contained HTML page: the verdict, the evidence, the methods, and what is not claimed. */

import type { ProtocolRecord } from '../causality/verdict.ts';
import { type Markup, markup, trusted } from './markup.ts';
import { reportSections } from './report-sections.ts';
import { FIGURE_STYLE, PAGE_STYLE } from './styles.ts';
import { table } from './tables.ts';
import { formatSite, titleOf, VERDICT_NAMES } from './verdict-names.ts';

interface ReportOptions {
  /** Hash of the run's manifest, under which the lab keeps it. */
  manifest?: string;
}

/** The same record gives the same page. */
export function renderReport(record: ProtocolRecord, options: ReportOptions = {}): string {
  const { evidence, verdict } = record;
  const title = titleOf(record);
  const page = markup`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${VERDICT_NAMES[verdict.verdict]}: ${title}</title>
<style>${trusted(FIGURE_STYLE)}${trusted(PAGE_STYLE)}</style>
</head>
<body><main>
${reportSections(record)}
${reproductionSection(record, options)}
<footer>Made by Cuvette ${evidence.version}.</footer>
</main></body>
</html>
`;
  return page.markup;
}

function reproductionSection(record: ProtocolRecord, { manifest }: ReportOptions): Markup {
  const { model, data, direction, seed, version } = record.evidence;
  const json = Buffer.from(JSON.stringify(record)).toString('base64');
  return markup`<h2>To do it again</h2>
${table('What the run rests on', [
  ['program', `Cuvette ${version}, ${model.engine} engine, ${model.dtype}`],
  ['seed', String(seed)],
  ['model', model.id],
  ['weights, SHA-256', model.weights],
  ['tokenizer, SHA-256', model.tokenizer],
  ['data, SHA-256', data.hash],
  ['direction, SHA-256', direction.hash],
  ...(manifest ? [['manifest, SHA-256', manifest] as const] : []),
  ['site', formatSite(record.evidence)],
])}
<p>The same question with the same model and seed, after as many other questions, gives the same evidence, and the same evidence the same verdict. <a download="record.json" href="data:application/json;base64,${trusted(json)}">The whole record</a>, with the question, all prompts and every value drawn above, is in this page.</p>`;
}

/** Renders a sweep as one self-contained HTML page: the answer, a map for each direction, and every cell in a table. */

import type { SweepRecord } from '../site-sweep/sweep-record.ts';
import { markup, trusted } from './markup.ts';
import { formatCount } from './numbers.ts';
import { FIGURE_STYLE, PAGE_STYLE } from './styles.ts';
import { sweepSections } from './sweep-sections.ts';

/** The same record gives the same page. */
export function renderSweep(record: SweepRecord, options: { manifest?: string } = {}): string {
  const { evidence } = record;
  const { model } = evidence;
  const json = Buffer.from(JSON.stringify(record)).toString('base64');
  const page = markup`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Sweep of ${model.id}</title>
<style>${trusted(FIGURE_STYLE)}${trusted(PAGE_STYLE)}</style>
</head>
<body><main>
${sweepSections(record)}
<h2>To do it again</h2>
<p>Cuvette ${evidence.version}, ${model.engine} engine, ${model.dtype}, seed ${String(evidence.seed)}, ${formatCount(evidence.runs)} runs of the model; weights <code>${model.weights}</code>, data <code>${evidence.data.hash}</code>${options.manifest !== undefined && markup`, manifest <code>${options.manifest}</code>`}. <a download="sweep.json" href="data:application/json;base64,${trusted(json)}">The whole record</a> is in this page.</p>
</main></body>
</html>
`;
  return page.markup;
}

/** Draws one rich output, fetching its value where that did not come with it. What is very large waits for a click. */

import { useEffect, useMemo, useState } from 'preact/hooks';
import type { Api } from '../api/client.ts';
import type { RichOutput } from '../api/schemas.ts';
import { formatBytes } from '../shell/format.ts';
import { lazy } from '../shell/lazy.tsx';
import { StaticText } from '../terminal/static-text.tsx';
import { asText, chooseRepresentation, type Representation } from './choose.ts';
import { FrameTable } from './frame-table.tsx';
import { HtmlFrame } from './html-frame.tsx';
import { readFrameTable } from './read-table.ts';

const Markdown = lazy(async () => (await import('./markdown.tsx')).Markdown);
const Latex = lazy(async () => (await import('./latex.tsx')).Latex);

export interface Source {
  api: Api;
  session: string;
  execution: number;
}

/** Bytes, of each kind, that are drawn without being asked for. */
const WITHOUT_ASKING = {
  html: 1_000_000,
  markdown: 200_000,
  latex: 50_000,
  image: 8_000_000,
  json: 200_000,
  text: 200_000,
};

export function RichView({ output, source }: { output: RichOutput; source: Source }) {
  const chosen = chooseRepresentation(output);
  const [isAsked, setAsked] = useState(false);
  if (!chosen) return <p class="quiet">An output of a kind that this page does not draw: {typesOf(output)}</p>;
  if (chosen.size > WITHOUT_ASKING[chosen.kind] && !isAsked) {
    return (
      <button type="button" class="placeholder" onClick={() => setAsked(true)}>
        {chosen.type}, {formatBytes(chosen.size)}. <span>Show</span>
      </button>
    );
  }
  if (chosen.kind === 'image') return <ImageView chosen={chosen} output={output} source={source} />;
  if (chosen.value !== undefined) return <TextKind kind={chosen.kind} text={asText(chosen.value)} />;
  return <Fetched key={`${output.index}`} chosen={chosen} output={output} source={source} />;
}

function TextKind({ kind, text }: { kind: Exclude<Representation['kind'], 'image'>; text: string }) {
  if (kind === 'markdown') return <Markdown text={text} />;
  if (kind === 'latex') return <Latex text={text} />;
  if (kind === 'html') return <HtmlView html={text} />;
  return <StaticText text={kind === 'json' ? pretty(text) : text} />;
}

function HtmlView({ html }: { html: string }) {
  const table = useMemo(() => readFrameTable(html), [html]);
  return table ? <FrameTable table={table} /> : <HtmlFrame html={html} />;
}

interface PartProps {
  chosen: Representation;
  output: RichOutput;
  source: Source;
}

function Fetched({ chosen, output, source }: PartProps) {
  const { api, session, execution } = source;
  const [text, setText] = useState<string | { failed: string }>();
  useEffect(() => {
    const leaving = new AbortController();
    if (output.index === null) return setText({ failed: `${chosen.type}, which is kept no more.` });
    api
      .part(session, execution, output.index, chosen.type, leaving.signal)
      .then(setText)
      .catch((error: unknown) => {
        if (!leaving.signal.aborted) setText({ failed: error instanceof Error ? error.message : String(error) });
      });
    return () => leaving.abort();
  }, [api, session, execution, output.index, chosen.type]);
  if (text === undefined) return <p class="quiet">Fetching {formatBytes(chosen.size)}…</p>;
  if (typeof text !== 'string') return <p class="quiet bad">{text.failed}</p>;
  return chosen.kind === 'image' ? null : <TextKind kind={chosen.kind} text={text} />;
}

/** As an image, an SVG runs no scripts and fetches nothing. */
function ImageView({ chosen: { type, value }, output, source: { api, session, execution } }: PartProps) {
  const alone = output.index === null ? undefined : api.partUrl(session, execution, output.index, type);
  const address = value === undefined ? alone : dataAddress(type, asText(value));
  const described = output.data['text/plain'];
  const alt = described === undefined ? 'Figure' : `Figure: ${asText(described).slice(0, 200)}`;
  const picture = <img src={address} alt={alt} loading="lazy" decoding="async" {...sizeFrom(output, type)} />;
  if (alone === undefined) return <span class="image">{picture}</span>;
  return (
    <a class="image" href={alone} target="_blank" rel="noopener noreferrer" aria-label={`${alt}. Open it alone.`}>
      {picture}
    </a>
  );
}

function dataAddress(type: string, value: string): string {
  if (type === 'image/svg+xml') return `data:${type};charset=utf-8,${encodeURIComponent(value)}`;
  return `data:${type};base64,${value.replace(/\s/g, '')}`;
}

/** Matplotlib and IPython tell the size, which keeps the page from jumping. */
function sizeFrom({ metadata }: RichOutput, type: string): { width?: number; height?: number } {
  const all = record(metadata);
  const { width, height } = { ...all, ...record(all[type]) };
  return {
    ...(typeof width === 'number' && { width }),
    ...(typeof height === 'number' && { height }),
  };
}

function record(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

function typesOf({ data, large = {} }: RichOutput): string {
  return [...Object.keys(data), ...Object.keys(large)].join(', ') || 'none';
}

function pretty(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), undefined, 2);
  } catch {
    return json;
  }
}

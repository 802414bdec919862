/** Connects a view to the MCP host that shows it: takes the tool's input and result, and the host's theme. What is drawn is the view's. */

import { App } from '@modelcontextprotocol/ext-apps';
import { type Signal, signal } from '@preact/signals';

export interface ToolResult {
  content?: readonly unknown[];
  structuredContent?: Record<string, unknown> | undefined;
  isError?: boolean | undefined;
}

export interface Hosted {
  readonly input: Signal<Record<string, unknown>>;
  readonly result: Signal<ToolResult | undefined>;
}

export function connectToHost(name: string): Hosted {
  const input = signal<Record<string, unknown>>({});
  const result = signal<ToolResult | undefined>(undefined);
  const app = new App({ name, version: '1' }, {}, { autoResize: true });
  app.ontoolinput = ({ arguments: given }) => {
    input.value = given ?? {};
  };
  app.ontoolresult = ({ content, structuredContent, isError, _meta }) => {
    // Where an agent is not given the fields, the view still is.
    const fields = record(record(_meta)?.['cuvette/view']) ?? record(structuredContent);
    result.value = { content, structuredContent: fields, isError };
  };
  app.onhostcontextchanged = ({ theme }) => showTheme(theme);
  app
    .connect()
    .then(() => showTheme(app.getHostContext()?.theme))
    .catch((error: unknown) => console.error(error));
  showTheme(undefined);
  return { input, result };
}

function showTheme(theme: string | undefined): void {
  const isDark = theme === undefined ? window.matchMedia('(prefers-color-scheme: dark)').matches : theme === 'dark';
  document.documentElement.dataset.theme = isDark ? 'dark' : 'light';
}

function record(value: unknown): Record<string, unknown> | undefined {
  return typeof value === 'object' && value !== null ? { ...value } : undefined;
}

/**
 * Gives hosts that show MCP Apps a view beside the answers of some tools: which hosts those are, which views there are, and what a view is
 * told. Hosts that do not declare the extension see nothing of this.
 */

import { readFile } from 'node:fs/promises';
import {
  CLIENT_CAPABILITIES_META_KEY,
  type McpServer,
  type RegisteredTool,
  type Transport,
} from '@modelcontextprotocol/server';
import * as z from 'zod';
import { packageFile } from '../../package-root.ts';
import type { Tool, ToolAnswer } from '../../tools/define-tool.ts';
import { plainView } from './plain-view.ts';

const EXTENSION = 'io.modelcontextprotocol/ui';
const MIME_TYPE = 'text/html;profile=mcp-app';
/** In `_meta` of an answer: the fields of the answer, which views show and models are not given. */
const VIEW_DATA = 'cuvette/view';

const VIEWS = [
  { tool: 'execute', name: 'execution', title: 'Execution', description: 'What an execution printed and showed.' },
  { tool: 'causality_protocol', name: 'verdict', title: 'Verdict', description: 'A verdict, and its evidence.' },
];
const uriOf = (name: string) => `ui://cuvette/${name}`;

const capabilities = z.object({
  extensions: z.object({ [EXTENSION]: z.object({ mimeTypes: z.array(z.string()).optional() }) }),
});
const message = z.object({
  method: z.string(),
  params: z.object({
    capabilities: z.unknown().optional(),
    _meta: z.object({ [CLIENT_CAPABILITIES_META_KEY]: z.unknown().optional() }).optional(),
  }),
});

/** Whether the client that sent this message shows apps; undefined if the message does not say. */
export function declaresApps(given: unknown): boolean | undefined {
  const { success, data } = message.safeParse(given);
  if (!success) return undefined;
  if (data.method === 'initialize') return showsApps(data.params.capabilities);
  const told = data.params._meta?.[CLIENT_CAPABILITIES_META_KEY];
  return told === undefined ? undefined : showsApps(told);
}

function showsApps(given: unknown): boolean {
  const { success, data } = capabilities.safeParse(given);
  return success && (data.extensions[EXTENSION].mimeTypes?.includes(MIME_TYPE) ?? false);
}

/** The transport, with somebody who sees each message before it is served. */
export function watchedTransport<T extends Transport>(transport: T, see: (message: unknown) => void): T {
  let serve: Transport['onmessage'];
  Object.defineProperty(transport, 'onmessage', {
    get: () => serve,
    set(given: NonNullable<Transport['onmessage']>) {
      serve = (received, extra) => {
        see(received);
        given(received, extra);
      };
    },
  });
  return transport;
}

/** Names the tool's view in lists, while the client is one that shows it. */
export function offerView(registered: RegisteredTool, tool: Tool, hasApps: () => boolean): void {
  const view = VIEWS.find((one) => one.tool === tool.name);
  if (!view) return;
  const meta = { ui: { resourceUri: uriOf(view.name) } };
  // The SDK reads it for each list, and what one client declares may come after its tools are registered.
  Object.defineProperty(registered, '_meta', { get: () => (hasApps() ? meta : undefined) });
}

/** What the view of a tool is told, if it has one. */
export function viewData(tool: Tool, { structured, shown = [] }: ToolAnswer): Record<string, unknown> | undefined {
  if (!VIEWS.some((one) => one.tool === tool.name)) return undefined;
  return { [VIEW_DATA]: { ...structured, ...(shown.length > 0 && { html: shown }) } };
}

export function registerViews(server: McpServer, hasApps: () => boolean): void {
  for (const { name, title, description } of VIEWS) {
    const uri = uriOf(name);
    const registered = server.registerResource(
      `view-${name}`,
      uri,
      { title, description, mimeType: MIME_TYPE },
      async () => ({ contents: [{ uri, mimeType: MIME_TYPE, text: await pageOf(name, title) }] }),
    );
    Object.defineProperty(registered, 'enabled', { get: hasApps });
  }
}

/** The view that is built with the page, or a plain one where that is not built. */
async function pageOf(name: string, title: string): Promise<string> {
  return readFile(packageFile('dist', 'web', `app-${name}.html`), 'utf8').catch(() => plainView(title));
}

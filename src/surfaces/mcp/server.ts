/** Serves MCP: lists the registry's tools and translates their answers into the protocol's, for both eras of the protocol. */

import {
  type CallToolResult,
  McpServer,
  type McpServerOptions,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/server/validators/ajv';
import type { Logger } from '../../log.ts';
import type { Sessions } from '../../sessions/sessions.ts';
import { callTool } from '../../tools/call.ts';
import type { Tool, ToolAnswer } from '../../tools/define-tool.ts';
import type { LabListing } from '../../tools/lab.ts';
import { TOOLS } from '../../tools/registry.ts';
import { VERSION } from '../../version.ts';
import { offerView, registerViews, viewData } from './apps.ts';
import { compactSchema } from './compact-schema.ts';
import { registerResources } from './resources.ts';

/** The lab, as one caller sees it. */
export interface McpLab {
  tools: readonly Tool[];
  listing: LabListing;
  /** Notifies clients of the protocol without sessions, which listen on a stream of their own, that the list of tools has grown. */
  onListed?(): void;
}

export interface McpOptions {
  /** What tools work on; a function opens them at the first call, so that an agent's first answer does not wait for it. */
  sessions: Sessions | (() => Promise<Sessions>);
  log: Logger;
  lab?: McpLab | undefined;
  /** The caller's id, where there are several callers. */
  caller?: string;
  /** Whether every tool has an output schema, and every answer its fields beside the text. */
  structured?: boolean;
  /** Whether the agent should be told of sessions beside the default one. */
  isShared?: boolean;
  /** The command by which the agent's shell reaches this session; left out where it cannot. */
  shellCommand?: string | undefined;
  /** Whether the client shows apps, where that is known before it says so to this server. */
  hasApps?: (() => boolean) | undefined;
  /** Interrupts running calls when aborted; they are answered all the same. */
  stop?: AbortSignal;
}

/** In `_meta` of a call: true for an answer with its fields, as programs read them, beside the text. */
const STRUCTURED = 'cuvette/structured';

// Over HTTP every request has a server of its own, so they share one validator.
const validator = new AjvJsonSchemaValidator();
const TOOLS_CHANGED = 'notifications/tools/list_changed';

/** Any further options are the SDK's own. */
export function createMcpServer(options: McpOptions, more: McpServerOptions = {}): McpServer {
  const { lab } = options;
  const server = new McpServer(
    { name: 'cuvette', title: 'Cuvette', version: VERSION },
    {
      jsonSchemaValidator: validator,
      // Where a list never changes, nobody needs to hold a stream open to hear of it.
      capabilities: { tools: { listChanged: lab?.listing.isOpen() === false }, resources: { listChanged: false } },
      debouncedNotificationMethods: [TOOLS_CHANGED],
      instructions: instructionsFor(options),
      ...more,
    },
  );
  const shown = lab?.tools.filter((tool) => tool.lab === 'entrance' || lab.listing.isOpen()) ?? [];
  registerTools(server, [...TOOLS, ...shown], options);
  registerResources(server, () => opened(options.sessions));
  registerViews(server, hasAppsOf(options));
  return server;
}

export function registerTools(server: McpServer, tools: readonly Tool[], options: McpOptions): void {
  const { sessions, log, stop, structured = false, caller } = options;
  const hasApps = hasAppsOf(options);
  for (const tool of tools) {
    const { name, title, description, input, output, annotations } = tool;
    const outputSchema = structured ? { outputSchema: compactSchema(output) } : {};
    const registered = server.registerTool(
      name,
      { title, description, inputSchema: compactSchema(input), ...outputSchema, annotations },
      async (args, ctx) => {
        const signal = stop ? AbortSignal.any([ctx.mcpReq.signal, stop]) : ctx.mcpReq.signal;
        const of = { sessions: await opened(sessions), caller, origin: 'agent' as const };
        const answer = await callTool(tool, args, { ...of, signal, progress: progressOf(ctx) }, log);
        if (tool.lab && !answer.isError) await listLab(server, options, ctx);
        const result = toResult(answer, structured || ctx.mcpReq._meta?.[STRUCTURED] === true);
        const view = hasApps() ? viewData(tool, answer) : undefined;
        return view ? { ...result, _meta: view } : result;
      },
    );
    offerView(registered, tool, hasApps);
  }
}

/** Lists the rest of the lab's tools after the first call of one of them, and notifies the client. */
async function listLab(server: McpServer, options: McpOptions, { mcpReq }: ServerContext): Promise<void> {
  const { lab } = options;
  if (!lab?.listing.open()) return;
  if (lab.onListed) {
    lab.onListed();
    // The older protocol has no such stream here: the notification goes ahead of the answer.
    if (mcpReq.envelope === undefined) await mcpReq.notify({ method: TOOLS_CHANGED }).catch(() => {});
    return;
  }
  const inside = lab.tools.filter((tool) => tool.lab === 'inside');
  registerTools(server, inside, options); // The SDK tells the client.
}

function hasAppsOf({ hasApps }: McpOptions): () => boolean {
  return () => hasApps?.() ?? false;
}

async function opened(sessions: McpOptions['sessions']): Promise<Sessions> {
  return typeof sessions === 'function' ? sessions() : sessions;
}

function instructionsFor({ lab, isShared, shellCommand }: McpOptions): string {
  const parts = ['Live sessions: Python keeps its variables; bash, node, typescript, go and cpp run beside it.'];
  if (isShared)
    parts.push(
      'Calls that name no session share your default one; session: "new" opens another, and the answer has its id.',
    );
  if (lab)
    parts.push(
      `The lab looks inside a language model: colab_attach chooses one${lab.listing.isOpen() ? '' : ', and lists the tools'}; causality_protocol judges.`,
    );
  if (shellCommand !== undefined)
    parts.push(
      `For multi-line code you may also use the shell: ${shellCommand} run <<'PY' … PY runs in this same session, and the user can read it before approving.`,
    );
  return parts.join(' ');
}

/** Sends structured content only on request, because clients give it to the model in place of the text. */
function toResult(
  { text, structured, images = [], links = [], isError = false }: ToolAnswer,
  isStructured: boolean,
): CallToolResult {
  const others = [
    ...images.map(({ mimeType, base64 }) => ({ type: 'image' as const, mimeType, data: base64 })),
    ...links.map((link) => ({ type: 'resource_link' as const, ...link })),
  ];
  return {
    // The APIs of models refuse an empty text beside a picture.
    content: text === '' && others.length > 0 ? others : [{ type: 'text', text }, ...others],
    ...(isStructured && { structuredContent: structured }),
    ...(isError && { isError }),
  };
}

/** Returns a function that sends progress, if the request asked for it. */
function progressOf({ mcpReq }: ServerContext): (message: string) => void {
  const progressToken = mcpReq._meta?.progressToken;
  if (progressToken === undefined) return () => {};
  let progress = 0;
  return (message) => {
    progress += 1;
    mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, message } }).catch(() => {});
  };
}

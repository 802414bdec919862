/** MCP: lists the registry's tools and turns their answers into the protocol's. Serves both eras; decides nothing. */

import {
  type CallToolResult,
  McpServer,
  type McpServerOptions,
  type ServerContext,
  type StandardSchemaWithJSON,
} from '@modelcontextprotocol/server';
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/server/validators/ajv';
import type * as z from 'zod';
import type { Logger } from '../../log.ts';
import type { Sessions } from '../../sessions/sessions.ts';
import { callTool } from '../../tools/call.ts';
import type { Tool, ToolAnswer } from '../../tools/define-tool.ts';
import { TOOLS } from '../../tools/registry.ts';
import { VERSION } from '../../version.ts';
import { registerResources } from './resources.ts';

export interface McpOptions {
  /** What tools work on; where an agent waits for its first answer, opened only when a tool asks for it. */
  sessions: Sessions | (() => Promise<Sessions>);
  log: Logger;
  /** The lab's, where the caller is the user of this machine: they open models and files by their paths. */
  labTools?: readonly Tool[];
  /** How the agent's shell reaches this very session; left out where it cannot. */
  shellCommand?: string;
  /** Interrupts the calls that run when aborted; they are answered all the same. */
  stop?: AbortSignal;
}

// Over HTTP every request has a server of its own: what is dear to make is made once, for all of them.
const validator = new AjvJsonSchemaValidator();
const schemas = new WeakMap<z.ZodObject, StandardSchemaWithJSON>();

/** Any further options are the SDK's own. */
export function createMcpServer(options: McpOptions, more: McpServerOptions = {}): McpServer {
  const server = new McpServer(
    { name: 'cuvette', title: 'Cuvette', version: VERSION },
    {
      jsonSchemaValidator: validator,
      // Neither list ever changes, so nobody needs to hold a stream open to hear of it.
      capabilities: { tools: { listChanged: false }, resources: { listChanged: false } },
      instructions: instructionsFor(options.shellCommand),
      ...more,
    },
  );
  registerTools(server, [...TOOLS, ...(options.labTools ?? [])], options);
  registerResources(server, () => opened(options.sessions));
  return server;
}

export function registerTools(server: McpServer, tools: readonly Tool[], { sessions, log, stop }: McpOptions): void {
  for (const tool of tools) {
    const { name, title, description, input, output, annotations } = tool;
    server.registerTool(
      name,
      { title, description, inputSchema: described(input), outputSchema: described(output), annotations },
      async (args, ctx) => {
        const signal = stop ? AbortSignal.any([ctx.mcpReq.signal, stop]) : ctx.mcpReq.signal;
        const context = { sessions: await opened(sessions), signal, progress: progressOf(ctx) };
        return toResult(await callTool(tool, args, context, log));
      },
    );
  }
}

async function opened(sessions: McpOptions['sessions']): Promise<Sessions> {
  return typeof sessions === 'function' ? sessions() : sessions;
}

function instructionsFor(shellCommand: string | undefined): string {
  const purpose = 'Live sessions: Python keeps its variables; bash, node, typescript, go and cpp run beside it.';
  if (shellCommand === undefined) {
    return `${purpose} Calls that name no session share your default one; session: "new" opens another, and the answer has its id.`;
  }
  return (
    `${purpose} The lab looks inside a language model: colab_attach chooses one (a small one is open already), causality_protocol judges. ` +
    `For multi-line code you may also use the shell: ${shellCommand} run <<'PY' … PY ` +
    'runs in this same session, and the user can read it before approving.'
  );
}

/** A schema that is shown to clients, and not checked by the SDK: `callTool` checks the input, once, for every surface. */
function described(schema: z.ZodObject): StandardSchemaWithJSON {
  const known = schemas.get(schema);
  if (known) return known;
  const { jsonSchema } = schema['~standard'];
  const shown: StandardSchemaWithJSON = {
    '~standard': {
      version: 1,
      vendor: 'cuvette',
      validate: (value) => ({ value }),
      jsonSchema: { input: once(jsonSchema.input), output: once(jsonSchema.output) },
    },
  };
  schemas.set(schema, shown);
  return shown;
}

/** Converts a schema at its first use; the SDK always asks for the same target. */
function once<Options, Json>(convert: (options: Options) => Json): (options: Options) => Json {
  let json: Json | undefined;
  return (options) => {
    json ??= convert(options);
    return json;
  };
}

function toResult({ text, structured, images = [], links = [], isError = false }: ToolAnswer): CallToolResult {
  return {
    content: [
      { type: 'text', text },
      ...images.map(({ mimeType, base64 }) => ({ type: 'image' as const, mimeType, data: base64 })),
      ...links.map((link) => ({ type: 'resource_link' as const, ...link })),
    ],
    structuredContent: structured,
    ...(isError && { isError }),
  };
}

/** Sends progress for a request that asked for it. */
function progressOf({ mcpReq }: ServerContext): (message: string) => void {
  const progressToken = mcpReq._meta?.progressToken;
  if (progressToken === undefined) return () => {};
  let progress = 0;
  return (message) => {
    progress += 1;
    mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, message } }).catch(() => {});
  };
}

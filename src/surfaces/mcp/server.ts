/** MCP: lists the registry's tools and turns their answers into the protocol's. Serves both eras; decides nothing. */

import {
  type CallToolResult,
  McpServer,
  type ServerContext,
  type StandardSchemaWithJSON,
} from '@modelcontextprotocol/server';
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/server/validators/ajv';
import type * as z from 'zod';
import type { Logger } from '../../log.ts';
import type { Sessions } from '../../sessions/sessions.ts';
import { callTool } from '../../tools/call.ts';
import type { ToolAnswer } from '../../tools/define-tool.ts';
import { TOOLS } from '../../tools/registry.ts';
import { VERSION } from '../../version.ts';
import { registerResources } from './resources.ts';

export interface McpOptions {
  sessions: Sessions;
  log: Logger;
  /** How the agent's shell reaches this very session. */
  shellCommand: string;
}

// One validator for all servers: making it is what costs.
const validator = new AjvJsonSchemaValidator();

export function createMcpServer({ sessions, log, shellCommand }: McpOptions): McpServer {
  const server = new McpServer(
    { name: 'cuvette', title: 'Cuvette', version: VERSION },
    {
      jsonSchemaValidator: validator,
      instructions:
        `Live Python sessions that keep their variables. For multi-line code you may also use the shell: ${shellCommand} run <<'PY' … PY ` +
        'runs in this same session, and the user can read it before approving.',
    },
  );
  for (const tool of TOOLS) {
    const { name, title, description, input, output, annotations } = tool;
    server.registerTool(
      name,
      { title, description, inputSchema: described(input), outputSchema: described(output), annotations },
      async (args, ctx) => {
        const answer = await callTool(
          tool,
          args,
          { sessions, signal: ctx.mcpReq.signal, progress: progressOf(ctx) },
          log,
        );
        return toResult(answer);
      },
    );
  }
  registerResources(server, sessions);
  return server;
}

/** A schema that is shown to clients, and not checked by the SDK: `callTool` checks the input, once, for every surface. */
function described(schema: z.ZodObject): StandardSchemaWithJSON {
  const { jsonSchema } = schema['~standard'];
  return { '~standard': { version: 1, vendor: 'cuvette', validate: (value) => ({ value }), jsonSchema } };
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

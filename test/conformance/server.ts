/** Serves Cuvette's MCP over HTTP on a port of its own, with what the conformance suite calls by name. Says its address and runs until it is ended. */

import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createAdaptorServer } from '@hono/node-server';
import {
  hostHeaderValidationResponse,
  localhostAllowedHostnames,
  localhostAllowedOrigins,
  type McpServer,
  originValidationResponse,
} from '@modelcontextprotocol/server';
import { Hono } from 'hono';
import { readConfig } from '../../src/config.ts';
import { createLog } from '../../src/log.ts';
import { createSessions } from '../../src/sessions/sessions.ts';
import { createMcpHttp } from '../../src/surfaces/mcp/http.ts';
import { createMcpServer, type McpOptions, registerTools } from '../../src/surfaces/mcp/server.ts';
import { registerContent } from './content.ts';
import { registerQuestions, states } from './questions.ts';
import { FIXTURE_TOOLS } from './tools.ts';

const root = realpathSync(mkdtempSync('/tmp/cv-'));
process.once('exit', () => rmSync(root, { recursive: true, force: true }));
const paths = { cache: join(root, 'c'), data: join(root, 'd'), runtime: join(root, 'r') };
const sessions = createSessions({ config: readConfig({}), paths, project: root });
const mcp = createMcpHttp({ sessionsFor: () => sessions, log: createLog('warn'), createServer });

const app = new Hono();
app.all('/mcp', ({ req: { raw } }) => {
  const refused =
    hostHeaderValidationResponse(raw, localhostAllowedHostnames()) ??
    originValidationResponse(raw, localhostAllowedOrigins());
  return refused ?? mcp.fetch(raw, { id: 'suite', kind: 'open' });
});
const server = createAdaptorServer({ fetch: app.fetch });
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`http://127.0.0.1:${port}/mcp\n`);
});
process.once('SIGTERM', () => process.exit(0));

/** Cuvette's own server for a request, with the suite's tools, resources and prompts added. */
function createServer(options: McpOptions): McpServer {
  const fixtures = createMcpServer(options, { requestState: { verify: states.verify } });
  fixtures.server.registerCapabilities({
    logging: {},
    completions: {},
    prompts: { listChanged: false },
    resources: { subscribe: true },
  });
  registerTools(fixtures, FIXTURE_TOOLS, options);
  registerContent(fixtures);
  registerQuestions(fixtures);
  return fixtures;
}

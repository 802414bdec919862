/**
 * `cuvette ui` serves the workbench page for the agent's own session of this folder: it finds or starts the folder's server as
 * `cuvette run` does, and passes on to that what the page asks. Whoever else is on this machine needs the token.
 */

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { Hono } from 'hono';
import { readConfig } from '../config.ts';
import { createLog } from '../log.ts';
import { findPaths, runtimeFolder } from '../paths.ts';
import type { RestEnv } from '../surfaces/caller.ts';
import { checkHostAndOrigin, createAccess, KEY } from '../surfaces/rest/access.ts';
import { onError } from '../surfaces/rest/problem.ts';
import type { SignIns } from '../surfaces/rest/sign-ins.ts';
import { pageRoutes } from '../surfaces/workbench/page.ts';
import { passOn } from './bridge-proxy.ts';
import { parseFlags, UI } from './command-flags.ts';
import type { FoundServer } from './find-server.ts';
import { followServer } from './follow-server.ts';
import { listen } from './listen.ts';
import { openBrowser } from './open-browser.ts';
import { openSignIns, takePageToken } from './page-token.ts';
import { stopSignal } from './this-program.ts';

const HOST = '127.0.0.1';
/** Another than that of `cuvette serve`, so that both can be open. */
const PORT = '8001';

export async function main(args: string[]): Promise<number> {
  const { values } = parseFlags({ args, options: UI });
  const { port: wantedPort, logLevel } = readConfig({ port: values.port ?? PORT });
  const runtime = runtimeFolder(findPaths().runtime);
  const token = takePageToken();
  const find = await followServer({ start: values.start ?? false, server: values.server });
  const server = createServer();
  server.requestTimeout = 0; // A large file takes its time.
  await listen(server, { host: HOST, port: wantedPort }, values.port !== undefined);
  const { port } = server.address() as AddressInfo;
  const signIns = openSignIns({ runtime, what: 'folder', port, wantedPort, token, ways: 'ui' });
  server.on('request', getRequestListener(createUiApp(signIns, find, createLog(logLevel)).fetch));
  const url = `http://${HOST}:${port}/?token=${signIns.token}`;
  process.stdout.write(`Workbench: ${url}\n`);
  if (values.open) openBrowser(url);
  await stopSignal();
  server.close();
  server.closeAllConnections();
  return 0;
}

function createUiApp(
  signIns: SignIns,
  find: () => Promise<FoundServer>,
  log: ReturnType<typeof createLog>,
): Hono<RestEnv> {
  // Other users of this machine must not come to the agent's session by this port.
  const config = readConfig({ host: HOST, apiKey: signIns.token }, {});
  const access = createAccess(config, () => signIns);
  const app = new Hono<RestEnv>();
  app.onError(onError(log));
  app.use(checkHostAndOrigin(config), access.middleware);
  app.route('/', pageRoutes({ signIns: () => signIns, tokenPrincipal: KEY }));
  app.all('*', async (c) => passOn(c, await find()));
  return app;
}

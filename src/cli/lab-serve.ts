/** `cuvette lab serve`: opens a model, and serves it to agents, of this machine or by TLS or a tunnel of others. */

import type { Server } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import { readConfig } from '../config.ts';
import type { Lab } from '../lab/lab.ts';
import { openLabThread } from '../lab/lab-thread.ts';
import type { LabContext } from '../lab/workbench.ts';
import { createLog } from '../log.ts';
import { findPaths } from '../paths.ts';
import { createLabApp } from '../surfaces/lab/app.ts';
import { openTunnel, type Tunnel } from '../surfaces/lab/tunnel.ts';
import { parseFlags } from './command-flags.ts';
import { moved, welcome } from './lab-banner.ts';
import { ENGINE_FLAGS, engineFrom } from './lab-engine.ts';
import { takeToken } from './lab-token.ts';
import { chooseReach, type Tls } from './lab-transport.ts';
import { listen } from './listen.ts';
import { stopSignal } from './stop-signal.ts';

const PORT = '8787';
const EVERYWHERE = ['0.0.0.0', '::'];

const OPTIONS = {
  model: { type: 'string', default: 'demo' },
  ...ENGINE_FLAGS,
  host: { type: 'string', default: '127.0.0.1' },
  port: { type: 'string' },
  tunnel: { type: 'string', default: 'none' },
  'tls-cert': { type: 'string' },
  'tls-key': { type: 'string' },
  'token-file': { type: 'string' },
  'log-level': { type: 'string' },
} as const;

export async function main(args: string[]): Promise<number | undefined> {
  const { values } = parseFlags({ args, options: OPTIONS });
  const { host, port, logLevel } = readConfig({
    host: values.host,
    port: values.port ?? PORT,
    logLevel: values['log-level'],
  });
  const reach = chooseReach({ host, port, tunnel: values.tunnel, cert: values['tls-cert'], key: values['tls-key'] });
  const paths = findPaths();
  const engine = engineFrom(values, paths.runtime);
  const token = takeToken(values['token-file']);
  if (token.warning !== undefined) process.stderr.write(`${token.warning}\n`);
  const log = createLog(logLevel);
  const stopped = stopSignal();
  const stop = new AbortController();
  const { signal } = stop;
  void stopped.then(() => stop.abort());

  const options = { ...paths, ...engine, model: values.model, project: process.cwd() };
  let opening: Promise<Lab> | undefined;
  const open = () => {
    opening ??= openLabThread(options, contextOf(signal));
    return opening;
  };
  // A port that is taken is told before the model is loaded; who comes meanwhile waits for it.
  const lab: Lab = {
    call: async (...call) => (await open()).call(...call),
    close: async () => (await opening?.catch(() => undefined))?.close(),
  };
  let tunnel: Tunnel | undefined;
  const names = () => namesOf(tunnel?.url());
  const server = serverFor(createLabApp({ lab, token: token.token, host, names, log }).fetch, reach.tls);
  try {
    await listen(server, { host, port }, values.port !== undefined);
    await open();
    const listens = urlOf(server, host, reach.tls);
    if (reach.tunnel)
      tunnel = await openTunnel({
        client: reach.tunnel,
        address: new URL(listens).host,
        onAddress: (url) => process.stdout.write(moved(url, token)),
        onTrouble: (message) => process.stderr.write(`${message}\n`),
        signal,
      });
    const reached = tunnel ? { endpoint: tunnel.url() ?? listens, listens } : { endpoint: listens, listens: undefined };
    process.stdout.write(await welcome(lab, { ...reached, token }, signal));
    await stopped;
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    await tunnel?.close();
    server.close();
    server.closeAllConnections();
    await lab.close();
  }
  return 0;
}

function contextOf(signal: AbortSignal): LabContext {
  return { signal, progress: (message) => process.stderr.write(`${message}\n`) };
}

function serverFor(fetch: ReturnType<typeof createLabApp>['fetch'], tls: Tls | undefined): Server {
  const secure = tls && {
    createServer,
    serverOptions: { cert: tls.cert, key: tls.key, minVersion: 'TLSv1.2' as const },
  };
  const server = createAdaptorServer({ fetch, ...secure }) as Server;
  server.requestTimeout = 0; // Long work is answered when it is done.
  return server;
}

function urlOf(server: Server, host: string, tls: Tls | undefined): string {
  const { port } = server.address() as AddressInfo;
  const name = tls && EVERYWHERE.includes(host) ? tls.name : host;
  return `${tls ? 'https' : 'http'}://${name.includes(':') ? `[${name}]` : name}:${port}`;
}

function namesOf(url: string | undefined): string[] {
  return url === undefined ? [] : [new URL(url).hostname];
}

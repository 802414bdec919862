/** `cuvette lab serve` opens a model and serves it to agents: on this machine, or over TLS or a tunnel to others. */

import type { Server } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createAdaptorServer } from '@hono/node-server';
import * as z from 'zod';
import { readConfig } from '../config.ts';
import { CuvetteError } from '../errors.ts';
import { openSpills } from '../files/spill.ts';
import type { Lab, LabContext } from '../lab/core/lab.ts';
import { openLabThread } from '../lab/local/lab-thread.ts';
import type { LocalLabOptions } from '../lab/local/local-lab.ts';
import { createLog } from '../log.ts';
import { findPaths } from '../paths.ts';
import { withoutSecrets } from '../sessions/environment-variables.ts';
import { limitIdleConnections } from '../surfaces/idle-connections.ts';
import { createLabApp } from '../surfaces/lab/app.ts';
import { openTunnel, type Tunnel } from '../surfaces/lab/tunnel.ts';
import { LAB_SERVE, parseFlags } from './command-flags.ts';
import { moved, welcome } from './lab-banner.ts';
import { takeToken } from './lab-token.ts';
import { chooseTransport, type Tls } from './lab-transport.ts';
import { listen } from './listen.ts';
import { stopSignal } from './this-program.ts';

const PORT = '8787';
const EVERYWHERE = ['0.0.0.0', '::'];
const TORCH_ONLY = ['dtype', 'device', 'quantization', 'torch-python'] as const;

const engineFlags = z.object({
  engine: z.enum(['embedded', 'torch']),
  dtype: z.enum(['auto', 'float32', 'bfloat16', 'float16']).optional(),
  device: z.string().min(1).optional(),
  quantization: z.enum(['8bit', '4bit']).optional(),
  'torch-python': z.string().min(1).optional(),
});

export async function main(args: string[]): Promise<number | undefined> {
  const { values } = parseFlags({ args, options: LAB_SERVE });
  const { host, port, logLevel } = readConfig({
    host: values.host,
    port: values.port ?? PORT,
    logLevel: values['log-level'],
  });
  const transport = chooseTransport({
    host,
    port,
    tunnel: values.tunnel,
    cert: values['tls-cert'],
    key: values['tls-key'],
  });
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
  // The server listens before the model is loaded, so that a port in use is reported at once; early calls wait for the model.
  const lab: Lab = {
    call: async (...call) => (await open()).call(...call),
    close: async () => (await opening?.catch(() => undefined))?.close(),
  };
  const spills = await openSpills(join(paths.data, 'spill'));
  let tunnel: Tunnel | undefined;
  const names = () => namesOf(tunnel?.url());
  const app = createLabApp({ lab, token: token.token, host, names, spills, log });
  const server = serverFor(app.fetch, transport.tls);
  try {
    await listen(server, { host, port }, values.port !== undefined);
    await open();
    const listens = urlOf(server, host, transport.tls);
    if (transport.tunnel)
      tunnel = await openTunnel({
        client: transport.tunnel,
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
  limitIdleConnections(server);
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

/** Chooses the engine by the flags, and refuses flags of torch for another engine. */
function engineFrom(values: Record<string, unknown>, runtime: string): Pick<LocalLabOptions, 'torch'> {
  const parsed = engineFlags.safeParse(values);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new CuvetteError('invalid_input', `--${String(issue?.path[0])}: ${issue?.message}. Run: cuvette help`);
  }
  const { engine, 'torch-python': python, ...rest } = parsed.data;
  if (engine === 'torch') return { torch: { ...definedOf({ ...rest, python }), runtime, env: withoutSecrets() } };
  const extra = TORCH_ONLY.find((name) => parsed.data[name] !== undefined);
  if (extra) throw new CuvetteError('invalid_input', `--${extra} is for --engine torch.`);
  return {};
}

type Defined<T> = { [Key in keyof T]?: Exclude<T[Key], undefined> };

function definedOf<T extends object>(values: T): Defined<T> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Defined<T>;
}

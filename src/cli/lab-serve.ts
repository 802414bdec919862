/** `cuvette lab serve`: opens a model, and serves it to agents of this machine. */

import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import { readConfig } from '../config.ts';
import { CuvetteError, messageOf } from '../errors.ts';
import type { Lab } from '../lab/lab.ts';
import { openLabThread } from '../lab/lab-thread.ts';
import type { LabContext } from '../lab/workbench.ts';
import { createLog } from '../log.ts';
import { isLoopback } from '../loopback.ts';
import { findPaths } from '../paths.ts';
import { createLabApp } from '../surfaces/lab/app.ts';
import { VERSION } from '../version.ts';
import { ENGINE_FLAGS, engineFrom } from './lab-engine.ts';
import { listen } from './listen.ts';
import { parseFlags } from './parse-flags.ts';
import { stopSignal } from './stop-signal.ts';

const PORT = '8787';

export async function main(args: string[]): Promise<number | undefined> {
  const { values } = parseFlags({
    args,
    options: {
      model: { type: 'string', default: 'demo' },
      ...ENGINE_FLAGS,
      host: { type: 'string', default: '127.0.0.1' },
      port: { type: 'string' },
      'token-file': { type: 'string' },
      'log-level': { type: 'string' },
    },
  });
  const { host, port, logLevel } = readConfig({
    host: values.host,
    port: values.port ?? PORT,
    logLevel: values['log-level'],
  });
  if (!isLoopback(host))
    throw new CuvetteError(
      'invalid_input',
      `A lab listens on this machine alone, and ${host} is reached by others. From elsewhere, use a tunnel: ssh -L ${port}:127.0.0.1:${port} HOST`,
    );
  const token = tokenFrom(values['token-file']);
  const log = createLog(logLevel);
  const stopped = stopSignal();
  const stop = new AbortController();
  void stopped.then(() => stop.abort());

  const lab = await openLabThread(
    { ...findPaths(), model: values.model, project: process.cwd(), ...engineFrom(values, findPaths().runtime) },
    contextOf(stop.signal),
  );
  const server = createAdaptorServer({ fetch: createLabApp({ lab, token, host, log }).fetch }) as Server;
  server.requestTimeout = 0; // Long work is answered when it is done.
  await listen(server, { host, port }, values.port !== undefined).catch(async (error: unknown) => {
    await lab.close();
    throw error;
  });
  await welcome(lab, urlOf(server, host), values['token-file'] === undefined ? token : undefined, stop.signal);

  await stopped;
  server.close();
  server.closeAllConnections();
  await lab.close();
  return 0;
}

function contextOf(signal: AbortSignal): LabContext {
  return { signal, progress: (message) => process.stderr.write(`${message}\n`) };
}

/** From the file, which is written if it is not there. */
function tokenFrom(file: string | undefined): string {
  const fresh = randomBytes(32).toString('base64url');
  if (file === undefined) return fresh;
  try {
    writeFileSync(file, `${fresh}\n`, { flag: 'wx', mode: 0o600 });
    return fresh;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST')
      throw new CuvetteError('invalid_input', `The token cannot be written to ${file}: ${messageOf(error)}.`, {
        cause: error,
      });
  }
  const token = readFileSync(file, 'utf8').trim();
  if (/^[\x21-\x7e]{16,}$/.test(token)) return token;
  throw new CuvetteError(
    'invalid_input',
    `${file} has no token: 16 characters at least, without spaces. Remove the file to have one made.`,
  );
}

function urlOf(server: Server, host: string): string {
  const { port } = server.address() as AddressInfo;
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** The token is told here, and nowhere else. */
async function welcome(lab: Lab, url: string, token: string | undefined, signal: AbortSignal): Promise<void> {
  const health = await lab.call('colab_status', {}, { signal, progress: () => {} });
  const shape = `${health.architecture}, ${health.layers} layers of width ${health.d_model}, ${health.dtype} on ${health.device}`;
  const credential = token === undefined ? ', token="the content of the token file"' : `, token="${token}"`;
  process.stdout.write(`Cuvette ${VERSION} lab · ${health.model_id} (${shape})
Endpoint: ${url}
${token === undefined ? '' : `Token:    ${token}\n`}
In the agent:  colab_attach(endpoint="${url}"${credential})
then capture_acts, train_probe, probe_eval, steer, sae_lookup, causality_protocol.

Ctrl-C stops it.
`);
}

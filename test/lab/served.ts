/** Serves a lab, or any other HTTP handler, on this machine for one test. */

import type { RequestListener, Server } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import { onTestFinished } from 'vitest';
import { openSpills } from '../../src/files/spill.ts';
import type { Lab } from '../../src/lab/core/lab.ts';
import { createLog } from '../../src/log.ts';
import { createLabApp } from '../../src/surfaces/lab/app.ts';
import type { LabCallLimits } from '../../src/surfaces/lab/lab-calls.ts';
import { temporaryFolder } from '../temporary-folder.ts';

export const TOKEN = 'a-token-that-is-long-enough';

export interface Served {
  url: string;
  server: Server;
}

export async function serveLab(lab: Lab, limits: Partial<LabCallLimits> = {}): Promise<Served> {
  const spills = await openSpills(temporaryFolder());
  const app = createLabApp({ lab, token: TOKEN, host: '127.0.0.1', spills, log: createLog('silent'), limits });
  return listening(createAdaptorServer({ fetch: app.fetch }) as Server);
}

export async function serveOther(answer: RequestListener): Promise<Served> {
  return listening(createServer(answer));
}

async function listening(server: Server): Promise<Served> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

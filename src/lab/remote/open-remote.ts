/** Finds out whether a lab or a Cuvette service is at a URL, and gives it as a lab. What is neither is left to the lab's own errors. */

import * as z from 'zod';
import type { Lab } from '../core/lab.ts';
import { createConnection } from './connection.ts';
import { HEADERS } from './lab-protocol.ts';
import { createRemoteLab, type RemoteOptions } from './remote-lab.ts';
import { createRemoteService } from './remote-service.ts';

/** Milliseconds; the service looks for its languages before it answers. */
const PATIENCE = 30_000;

/** What the service says to everybody; a lab says other things, and to those alone who have its token. */
const serviceSchema = z.object({ status: z.literal('healthy') });

export async function openRemote(options: RemoteOptions, signal: AbortSignal): Promise<Lab> {
  return (await isService(options, signal)) ? createRemoteService(options) : createRemoteLab(options);
}

async function isService({ endpoint, token }: RemoteOptions, signal: AbortSignal): Promise<boolean> {
  const remote = { endpoint, kind: 'lab' } as const;
  const connection = createConnection({ remote, token, instanceHeader: HEADERS.instance, silence: PATIENCE });
  try {
    const patience = AbortSignal.any([signal, AbortSignal.timeout(PATIENCE)]);
    const response = await connection.send({ method: 'GET', path: '/health' }, patience);
    return serviceSchema.safeParse(await response.json()).success;
  } catch {
    signal.throwIfAborted();
    return false;
  }
}

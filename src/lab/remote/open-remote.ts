/** Finds out what is at a URL, a lab or a Cuvette service, and gives it as a lab. What is neither is left to the lab's own errors. */

import * as z from 'zod';
import type { Lab } from '../core/lab.ts';
import { createRemoteLab, parseEndpoint } from './remote-lab.ts';
import { createRemoteService } from './remote-service.ts';

/** Milliseconds; the service looks for its languages before it answers. */
const PATIENCE = 30_000;

/** What the service says to everybody; a lab says other things, and to those alone who have its token. */
const serviceSchema = z.object({ status: z.literal('healthy') });

export async function openRemote(at: Parameters<typeof createRemoteLab>[0], signal: AbortSignal): Promise<Lab> {
  return (await isService(at, signal)) ? createRemoteService(at) : createRemoteLab(at);
}

async function isService(
  { endpoint, token }: { endpoint: string; token: string | undefined },
  signal: AbortSignal,
): Promise<boolean> {
  const url = `${parseEndpoint(endpoint)}/health`;
  try {
    const response = await fetch(url, {
      headers: { accept: 'application/json', ...(token && { authorization: `Bearer ${token}` }) },
      redirect: 'error',
      signal: AbortSignal.any([signal, AbortSignal.timeout(PATIENCE)]),
    });
    return serviceSchema.safeParse(await response.json()).success;
  } catch {
    signal.throwIfAborted();
    return false;
  }
}

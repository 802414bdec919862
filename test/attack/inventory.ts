/** Lists all that a service has on the machine at a moment, with what the server itself holds: descriptors, bound sockets and memory. */

import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Service } from '../e2e/http/service.ts';
import { extraOf, settled, steadyTraceOf, type Trace, traceOf } from './traces.ts';

const SAMPLES = 8;

/** What is there once the service is at rest. */
export async function inventoryOf(service: Service): Promise<Trace> {
  await steadyTraceOf(service.home);
  return look(service);
}

/** What there is more of than before, once it has had time to go. */
export function surplusOf(service: Service, before: Trace): Promise<string[]> {
  return settled(() => extraOf(before, look(service)));
}

/** Bytes that a process has in memory: the least of several looks, since garbage comes and goes. */
export async function quietMemoryOf(pid: number): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let sample = 0; sample < SAMPLES; sample += 1) {
    await sleep(250);
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    least = Math.min(least, Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) * 1024);
  }
  return least;
}

function look({ home, pid }: Service): Trace {
  const trace = traceOf(home);
  // A keeper that waits for a program has a number of its own; the next takes its place.
  const files = trace.files.map((path) => path.replace(/\/r\.\d+\.\d+/, '/r.*'));
  return { ...trace, files: [...files, ...descriptorsOf(pid), ...boundBelow(home.root)] };
}

/** What each descriptor is open on, without the numbers that are different every time. */
function descriptorsOf(pid: number): string[] {
  const folder = `/proc/${pid}/fd`;
  return readdirSync(folder).flatMap((number) => {
    try {
      return [`open: ${readlinkSync(`${folder}/${number}`).replace(/:\[\d+\]/, '')}`];
    } catch {
      return []; // Closed in the meantime.
    }
  });
}

/** Unix sockets of this machine's network. */
function boundBelow(root: string): string[] {
  const rows = readFileSync('/proc/net/unix', 'utf8').split('\n');
  return rows.filter((row) => row.includes(root)).map((row) => `bound: ${row.slice(row.indexOf(root))}`);
}

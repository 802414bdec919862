/**
 * Produces an hour's worth of output in a minute, in streams that are read, read slowly, cut or never read, and in answers of the largest size.
 * Checks that the server's memory stays within its bound, that what was kept is right and that nothing of it stays on the disk.
 */

import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { waitFor } from '../e2e/harness.ts';
import { ok } from '../e2e/http/service.ts';
import { KEY, SMALL_LIMITS, useTarget } from './attack.ts';

const MIB = 2 ** 20;
/** Of the server alone: its interpreters have limits of their own. */
const MOST_MEMORY = 300 * MIB;
const MANY = 30_000_000;

const service = await useTarget({
  args: ['--sandbox', 'on', '--max-sessions', '60'],
  env: { ...SMALL_LIMITS, CUVETTE_MAX_OUTPUT: undefined, CUVETTE_TIMEOUT: '120' },
});
const caller = service.as({ 'x-api-key': KEY });

/** Lines of which some characters are longer in JSON. */
const print = (characters: number) => `yes 'a line of "output" with a tab\tin it' | head -c ${characters}`;

afterEach(() => expect(peakOf(service.pid)).toBeLessThan(MOST_MEMORY));

describe('the memory of the server stays within its bound when streams', () => {
  test('are read, one after the other and four at once', async () => {
    const streams = await inTurns(8, 4, async () => drain(await post('/exec/stream', { code: print(MANY) })));
    for (const { bytes, end } of streams) {
      // Each character once as it came, and three times in the last event.
      expect(bytes).toBeGreaterThan(4 * MANY);
      expect(end).toMatch(/"language":"bash","version":"[\d.]+"}\n\n$/);
    }
    report('streams that are read');
  });

  test('are left unread at first and read in the end', async () => {
    const before = await endedExecutions();
    const unread = await Promise.all(
      Array.from({ length: 10 }, () => post('/exec/stream', { code: print(MANY), background: true })),
    );
    while ((await endedExecutions()) < before + unread.length) await sleep(100);
    report('streams that nobody reads');
    for (const response of unread.slice(2)) response.destroy();
    const whole = await Promise.all(unread.slice(0, 2).map(drain));
    for (const { bytes, end } of whole) expect([bytes > 4 * MANY, end.endsWith('}\n\n')]).toEqual([true, true]);
    report('the same, read');
  });

  test('are cut by their readers', async () => {
    await inTurns(24, 6, async () => {
      const response = await post('/exec/stream', { code: print(MANY) });
      await new Promise<void>((resolve) => {
        let bytes = 0;
        response.on('data', ({ length }: Buffer) => {
          bytes += length;
          if (bytes > MIB) resolve();
        });
      });
      response.destroy();
    });
    report('streams that are cut');
  });

  test('consist of very many short events', async () => {
    const code = 'import sys\nfor _ in range(60_000): sys.stdout.write("."); sys.stdout.flush()';
    const ends = await inTurns(4, 4, async () => drain(await post('/exec/stream', { lang: 'py', code })));
    for (const { end } of ends) expect(end).toMatch(/"language":"py".*}\n\n$/);
    report('many short events');
  });
});

describe('the memory of the server stays within its bound when answers', () => {
  test('of 100 MB and more end at the limit and arrive whole', async () => {
    const answers = await inTurns(6, 3, async () => drain(await post('/exec', { code: print(100_000_000) })));
    for (const { bytes, end } of answers) {
      expect(bytes).toBeGreaterThan(3 * 2 ** 25);
      expect(end).toContain('It printed more than 33,554,432 characters');
    }
    report('answers of 100 MB');
  });

  test('are not read until their connection is cut', async () => {
    const unread = await Promise.all(Array.from({ length: 8 }, () => post('/exec', { code: print(MANY) })));
    for (const response of unread) response.destroy();
    report('answers that nobody reads');
  });
});

test('the output kept for a stream is dropped with its session and never has a name on the disk', async () => {
  const code = `print("x" * ${MIB})`;
  const { session_id } = await caller.python(code);
  const before = spillsOf(service.pid).length;
  await drain(await post('/exec/stream', { lang: 'py', session_id, code }));
  expect(spillsOf(service.pid).length).toBeGreaterThan(before);
  expect(readdirSync(join(service.home.data, 'spill'))).toEqual([]);
  ok(await caller.send('DELETE', `/sessions/${session_id}`));
  await waitFor('all of it is closed', () => spillsOf(service.pid).length === before);
});

function post(path: string, body: Record<string, unknown>): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const sent = request(`${service.url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-api-key': KEY },
      agent: false,
    });
    sent.once('response', (response) => {
      response.on('error', () => {}); // Some are cut on purpose.
      if (response.statusCode === 200) resolve(response);
      else reject(new Error(`${path} was answered with ${response.statusCode}`));
    });
    sent.once('error', reject);
    sent.end(JSON.stringify({ lang: 'bash', ...body }));
  });
}

/** Reads to the end, and keeps only how much it was and the last of it. */
async function drain(response: IncomingMessage): Promise<{ bytes: number; end: string }> {
  let bytes = 0;
  let end = '';
  for await (const chunk of response) {
    bytes += chunk.length;
    end = (end + chunk.subarray(-1000).toString()).slice(-1000);
  }
  return { bytes, end };
}

/** Does it so many times, so many of them at once. */
async function inTurns<T>(times: number, atOnce: number, work: () => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  let left = times;
  const workers = Array.from({ length: atOnce }, async () => {
    while (left > 0) {
      left -= 1;
      results.push(await work());
    }
  });
  await Promise.all(workers);
  return results;
}

async function endedExecutions(): Promise<number> {
  const { text } = ok(await caller.get('/metrics'));
  const counts = [...text.matchAll(/^cuvette_executions_total{.*} (\d+)$/gm)].map(([, count]) => Number(count));
  return counts.reduce((sum, count) => sum + count, 0);
}

function statusOf(pid: number, field: string): number {
  return Number(new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024;
}

function peakOf(pid: number): number {
  return statusOf(pid, 'VmHWM');
}

function report(after: string): void {
  const figures = ['VmRSS', 'VmHWM'].map((field) => Math.round(statusOf(service.pid, field) / MIB));
  console.log(`memory after ${after}: ${figures[0]} MiB, at most ${figures[1]} MiB`);
}

/** What the server holds open that has no name any more. */
function spillsOf(pid: number): string[] {
  const folder = `/proc/${pid}/fd`;
  return readdirSync(folder)
    .flatMap((number) => {
      try {
        return [readlinkSync(`${folder}/${number}`)];
      } catch {
        return []; // Closed in the meantime.
      }
    })
    .filter((path) => path.includes('/spill/'));
}

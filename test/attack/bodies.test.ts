/** Sends bodies that are expensive to parse, and checks that each is refused with the right status and that no other caller waits for it. */

import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { formOf, ok, type Problem } from '../e2e/http/service.ts';
import { useConfined } from './attack.ts';
import { latencyDuring } from './latency.ts';

const { caller, attack, count } = await useConfined();

const MIB = 2 ** 20;
const json = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
const PATHS = ['/exec', '/exec/stream', '/exec/programmatic', '/exec/programmatic/cancel', '/mcp'];

/** A request with something in a field that is looked at, and in one that is not. */
const withIn = (value: string) => Buffer.from(`{"lang":"py","code":"1","files":${value},"unknown":${value}}`);
const deep = withIn('['.repeat(4 * MIB) + ']'.repeat(4 * MIB));
const BODIES: [string, Buffer, number][] = [
  ['nested arrays', deep, 400],
  ['arrays without an end', Buffer.alloc(32 * MIB, '['), 400],
  ['nested objects', withIn(`${'{"a":'.repeat(MIB)}1${'}'.repeat(MIB)}`), 400],
  ['millions of objects', withIn(`[${'{},'.repeat(5 * MIB)}{}]`), 413],
  ['millions of numbers', withIn(`[${'1,'.repeat(8 * MIB)}1]`), 413],
  ['a million keys', Buffer.from(`{${Array.from({ length: MIB }, (_, key) => `"k${key}":1`).join(',')}}`), 413],
  ['a million times the same key', Buffer.from(`{${'"__proto__":{},'.repeat(MIB)}"lang":"py"}`), 413],
  ['as many wrong files as there may be values', withIn(`[${'{},'.repeat(60_000)}{}]`), 400],
];

describe('costly JSON', () => {
  test.each(BODIES)('of %s is refused on every route', async (_, body, status) => {
    count(PATHS.length);
    for (const path of PATHS) {
      const reply = await caller.send('POST', path, { headers: json, body });
      const { jsonrpc, error, detail } = reply.json<Problem & { jsonrpc?: string }>();
      // What is within the limits is no message of MCP's, and has no request_id.
      expect([status, 400], path).toContain(reply.status);
      expect(path === '/mcp' ? jsonrpc : detail, reply.text).toEqual(expect.any(String));
      expect(error).not.toBe('internal');
    }
  });

  test('does not hold up another caller', async () => {
    const another = { call: async () => ok(await caller.get('/')), every: 25 };
    const quiet = await latencyDuring(another, () => sleep(3000));
    const loud = await latencyDuring(another, async () => {
      for (const path of PATHS) for (const [, body] of BODIES) await caller.send('POST', path, { headers: json, body });
    });
    // A service that parsed them would hold everybody for as long as that takes, which this machine is asked for while it is as busy as it was just now.
    const began = performance.now();
    JSON.parse(deep.toString());
    const parsing = performance.now() - began;
    const [before, during, held] = [quiet.p99, loud.p99, parsing].map(Math.round);
    console.log(
      `another caller's p99: ${before} ms quiet, ${during} ms during the attack; to parse one body: ${held} ms`,
    );
    expect(loud.p99 - quiet.p99).toBeLessThan(parsing / 20);
  });

  test('is accepted when it is a program of many megabytes in one string', async () => {
    const code = `text = """${'print("[{,:")\\n'.repeat((8 * MIB) / 16)}"""\nprint(len(text) > 1000)`;
    expect((await attack('py', code)).stdout).toBe('True\n');
  });

  test('in the input of a tool call that code makes reaches the caller as text, however deeply it is nested', async () => {
    count(1);
    const code = 'print(await ask(value="x"))';
    const question = `import os, glob
from pathlib import Path
folder = glob.glob("/mnt/data/.cuvette-tools-*")[0]
Path(folder, "mark.in").write_text("[" * 1_000_000 + "]" * 1_000_000)
os.mkfifo(folder + "/mark.out")
Path(folder, "calls").write_text("mark ask\\n")
${code}`;
    const body = { lang: 'py', code: question, tools: [{ name: 'ask' }] };
    const reply = await caller.post('/exec/programmatic', body);
    expect(reply.status, reply.text.slice(0, 300)).toBe(200);
    const { tool_calls = [], session_id } = reply.json<{ tool_calls?: { input: unknown }[]; session_id: string }>();
    expect(tool_calls.map(({ input }) => typeof input)).toContain('string');
    expect([200, 404]).toContain((await caller.send('DELETE', `/sessions/${session_id}`)).status);
  });
});

describe('an upload form', () => {
  test('with very many fields, or with nested JSON in a field, is refused without an internal error', async () => {
    count(2);
    const many = formOf(Array.from({ length: 10_000 }, (_, n): [string, string] => [`field-${n}`, 'x']));
    expect((await caller.send('POST', '/upload', many)).status).toBe(413);
    const nested = formOf([['entity_id', '['.repeat(60_000)], { name: 'a.txt', content: 'a' }]);
    expect((await caller.send('POST', '/upload', nested)).status).toBe(422);
  });
});

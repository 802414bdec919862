/** Makes calls that take longer than the allowed silence: white space is sent before the answer, which every client reads as the same JSON. */

import { execFile } from 'node:child_process';
import { readdirSync, writeFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { waitFor } from '../harness.ts';
import { type ExecAnswer, type Problem, useService } from './service.ts';

const service = await useService({ args: ['--keep-alive', '0.2'] });
const run = promisify(execFile);

/** Waits in its session for the file `go`, then prints. */
const waiting = (text: string) => `until [ -e go ]; do sleep 0.05; done; echo "${text}"`;

/** Lets the code go on that waits, in whichever session. */
function letGo(): void {
  const sessions = join(service.home.data, 'sessions');
  for (const id of readdirSync(sessions)) writeFileSync(join(sessions, id, 'workspace', 'go'), '');
}

function post(path: string, body: object): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const sent = request(`${service.url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      agent: false,
    });
    sent.once('response', resolve);
    sent.once('error', reject);
    sent.end(JSON.stringify(body));
  });
}

/** The text as it comes, and at last all of it. */
function reading(response: IncomingMessage): { soFar(): string; whole: Promise<string> } {
  let text = '';
  const whole = new Promise<string>((resolve) => {
    response.setEncoding('utf8').on('data', (more: string) => {
      text += more;
    });
    response.once('end', () => resolve(text));
  });
  return { soFar: () => text, whole };
}

describe('a long call', () => {
  test('is sent white space, then its answer', async () => {
    const response = await post('/exec', { lang: 'bash', entity_id: 'long', code: waiting('past') });
    expect([response.statusCode, response.headers['content-type']]).toEqual([200, 'application/json']);
    const { soFar, whole } = reading(response);
    await waitFor('signs of life', () => soFar().length >= 3);
    expect(soFar().trim()).toBe('');
    letGo();
    const answer: ExecAnswer = JSON.parse(await whole);
    expect([answer.stdout, answer.run.code]).toEqual(['past\n', 0]);
  });

  test('that waits for its turn first is sent white space too', async () => {
    const entity_id = 'turn';
    const first = reading(await post('/exec', { lang: 'bash', entity_id, code: `rm -f go; ${waiting('first')}` }));
    const second = reading(await post('/exec', { lang: 'bash', entity_id, code: 'echo second' }));
    await waitFor('signs of life', () => first.soFar().length >= 3 && second.soFar().length >= 3);
    letGo();
    expect(JSON.parse(await first.whole).stdout).toBe('first\n');
    expect(JSON.parse(await second.whole).stdout).toBe('second\n');
  });

  test('whose session is removed meanwhile is told so in stderr', async () => {
    const { session_id } = await service.python('1');
    const { soFar, whole } = reading(
      await post('/exec', { lang: 'py', session_id, code: 'import time; time.sleep(60)' }),
    );
    await waitFor('signs of life', () => soFar().length >= 2);
    await service.send('DELETE', `/sessions/${session_id}`);
    const answer: ExecAnswer = JSON.parse(await whole);
    expect(answer.stderr).not.toBe('');
    expect(answer.run.code).not.toBe(0);
  });

  test('of a program that calls tools is sent white space, then its tool calls', async () => {
    const code = `${waiting('past')}; add '{"a":1}'`;
    const begun = reading(
      await post('/exec/programmatic', { lang: 'bash', entity_id: 'tools', code, tools: [{ name: 'add' }] }),
    );
    await waitFor('signs of life', () => begun.soFar().length >= 3);
    letGo();
    const asked = JSON.parse(await begun.whole);
    expect(asked.status).toBe('tool_call_required');
    const [{ id }] = asked.tool_calls;
    const next = { continuation_token: asked.continuation_token, tool_results: [{ call_id: id, result: 3 }] };
    const ended = JSON.parse(await reading(await post('/exec/programmatic', next)).whole);
    expect([ended.status, ended.stdout]).toEqual(['completed', 'past\n3\n']);
  });

  test.each([
    ['fetch', viaFetch],
    [
      'curl and jq',
      async (url: string, body: string) =>
        (await run('bash', ['-c', `curl -s '${url}' -H 'content-type: application/json' -d '${body}' | jq -r .stdout`]))
          .stdout,
    ],
    [
      'Python',
      async (url: string, body: string) => {
        const code = `import json, sys, urllib.request as r
print(json.load(r.urlopen(r.Request(sys.argv[1], sys.argv[2].encode(), {"content-type": "application/json"})))["stdout"])`;
        return (await run('python3', ['-c', code, url, body])).stdout;
      },
    ],
  ])('is read correctly by %s', async (_, read) => {
    const body = JSON.stringify({ lang: 'bash', code: 'sleep 1; echo read' });
    expect((await read(`${service.url}/exec`, body)).trim()).toBe('read');
  });
});

test('a request that is wrong from the start still has its error status', async () => {
  const reply = await service.post('/exec', { lang: 'py' });
  expect([reply.status, reply.json<Problem>().status]).toEqual([400, 400]);
});

async function viaFetch(url: string, body: string): Promise<string> {
  const response = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  const answer = (await response.json()) as ExecAnswer;
  return answer.stdout;
}

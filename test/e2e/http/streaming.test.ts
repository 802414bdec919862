/** Streams code as it runs, and checks the order of events, resuming, silence, and callers that disconnect. */

import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { allGone, processesOf, waitFor } from '../harness.ts';
import { type Problem, type StreamEvent, unusedMark, useService } from './service.ts';

const service = await useService();
// Under way while the other tests run: it takes longer than all of them.
const silent = service.stream({ lang: 'py', code: 'import time; time.sleep(16)' });
const TICKS = 'import time\nfor i in range(8):\n    print(i, flush=True)\n    time.sleep(0.15)';

const bare = (events: StreamEvent[]) => events.map(({ at: _, ...event }) => event);

describe('events of a stream', () => {
  test('come in order, as they happen, each with an id of its own', async () => {
    const stream = await service.stream({ lang: 'py', code: TICKS });
    expect(await stream.ended).toBe(true);
    const { events } = stream;
    expect(stream.printed()).toBe('0\n1\n2\n3\n4\n5\n6\n7\n');
    expect([events[0]?.type, events.at(-1)?.type]).toEqual(['session', 'done']);
    const ids = events.map(({ eventId }) => eventId);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.every((id) => id !== '')).toBe(true);
    expect((events.at(-2)?.at ?? 0) - (events[1]?.at ?? 0)).toBeGreaterThan(800);
  });

  test('name their output stream, and the last one has all that /exec answers', async () => {
    const stream = await service.stream({
      lang: 'bash',
      code: 'echo out; sleep 0.1; echo err >&2; echo f > f.txt; exit 3',
    });
    expect(await stream.ended).toBe(true);
    const textOf = (wanted: string) =>
      stream.events.flatMap(({ type, name, text }) => (type === 'stream' && name === wanted ? [text] : [])).join('');
    expect([textOf('stdout'), textOf('stderr')]).toEqual(['out\n', 'err\n']);
    expect(stream.events.at(-1)).toMatchObject({
      type: 'done',
      stdout: 'out\n',
      stderr: 'err\n',
      files: [{ name: 'f.txt' }],
      run: { code: 3 },
      language: 'bash',
      session_id: stream.events[0]?.session_id,
    });
  });

  test('for an exception come before the end', async () => {
    const stream = await service.stream({ lang: 'py', code: 'print(1)\n1/0' });
    await stream.ended;
    expect(stream.kinds()).toEqual(['session', 'stream', 'error', 'done']);
    expect(await stream.event('error')).toMatchObject({ ename: 'ZeroDivisionError' });
    expect(stream.events.at(-1)?.stderr).toContain('ZeroDivisionError');
  });

  test('carry text of every kind unharmed', async () => {
    const text = 'data: x\n\nid: y\r\n: no comment \u0000 \u2028 ünï 🎉\n\n\n';
    const stream = await service.stream({ lang: 'py', code: `print(${JSON.stringify(text)}, end="")` });
    await stream.ended;
    expect(stream.printed()).toBe(text);
  });

  test('with much output are whole', async () => {
    const stream = await service.stream({ lang: 'bash', code: 'seq 300000' });
    await stream.ended;
    const expected = `${Array.from({ length: 300_000 }, (_, n) => n + 1).join('\n')}\n`;
    expect(stream.printed() === expected).toBe(true);
    expect(stream.events.at(-1)?.stdout === expected).toBe(true);
  });

  test('are not sent for a wrong request, which is refused as any other', async () => {
    const reply = await service.post('/exec/stream', { lang: 'py' });
    expect([reply.status, reply.json<Problem>().status]).toEqual([400, 400]);
  });

  test('for a language that is not here are those of an execution that failed', async () => {
    const stream = await service.stream({ lang: 'cobol', code: '1' });
    expect([stream.status, await stream.ended, stream.kinds()]).toEqual([200, true, ['session', 'stream', 'done']]);
    expect(stream.events.at(-1)?.stderr).toMatch(/cobol.*Languages that are here: .*py/);
  });
});

describe('resuming a stream', () => {
  test('with the last id gives the rest once, and the code does not run again', async () => {
    const entity_id = 'back';
    const request = {
      lang: 'py',
      code: `open("runs", "a").write("run ").real\n${TICKS}`,
      background: true,
      entity_id,
    };
    const first = await service.stream(request);
    await waitFor('three events', () => first.events.length >= 4);
    first.close();
    const seen = first.events.length;
    // The same request again, as a reader does that knows no better.
    const second = await service.stream(request, { 'last-event-id': first.events.at(-1)?.eventId ?? '' });
    expect(await second.ended).toBe(true);
    const all = [...first.events.slice(0, seen), ...second.events];
    expect(all.flatMap(({ type, text }) => (type === 'stream' ? [text] : [])).join('')).toBe(
      '0\n1\n2\n3\n4\n5\n6\n7\n',
    );
    expect(all.at(-1)?.type).toBe('done');

    const whole = await service.stream({}, { 'last-event-id': first.events[0]?.eventId ?? '' });
    await whole.ended;
    expect(bare(whole.events)).toEqual(bare(all.slice(1)));
    const last = await service.stream({}, { 'last-event-id': all.at(-1)?.eventId ?? '' });
    expect([await last.ended, last.events]).toEqual([true, []]);
    expect((await service.bash('cat runs', { entity_id })).stdout).toBe('run ');
  });

  test.each(['x', `${'x'.repeat(21)}.1.1`, '../../etc'])(
    'with %s, which is the id of nothing, gives 404',
    async (id) => {
      const reply = await service.post('/exec/stream', { lang: 'py', code: '1' }, { headers: { 'last-event-id': id } });
      expect([reply.status, reply.json<Problem>().code]).toEqual([404, 'unknown_execution']);
    },
  );
});

describe.concurrent('a caller that disconnects', () => {
  test.each([
    ['py', (path: string) => `import time\nprint("begun", flush=True)\ntime.sleep(600)\nopen("${path}", "w")`],
    ['bash', (path: string) => `echo begun; sleep 600; touch ${path}`],
  ])('from a stream of %s code interrupts the code', async (lang, code) => {
    const mark = unusedMark(service.home);
    const stream = await service.stream({ lang, code: code(mark.path), entity_id: `away-${lang}` });
    await stream.event('stream');
    stream.close();
    // It would come after all of the code before it.
    const next = await service.exec({
      lang,
      code: lang === 'py' ? 'print("next")' : 'echo next',
      entity_id: `away-${lang}`,
    });
    expect(next.stdout).toBe('next\n');
    expect(mark.isThere()).toBe(false);
  });

  test.each([
    [
      'py',
      (begun: string, ended: string) => `import time\nopen("${begun}", "w")\ntime.sleep(600)\nopen("${ended}", "w")`,
    ],
    ['bash', (begun: string, ended: string) => `touch ${begun}; sleep 600; touch ${ended}`],
  ])('from a call of %s code interrupts the code', async (lang, code) => {
    const [begun, ended] = [unusedMark(service.home), unusedMark(service.home)];
    const abort = new AbortController();
    const body = { lang, code: code(begun.path, ended.path), entity_id: `left-${lang}` };
    const call = service.exec(body, { signal: abort.signal });
    await waitFor('the code runs', begun.isThere);
    abort.abort();
    await expect(call).rejects.toThrow();
    // It comes after all of the code before it.
    await service.exec({ lang, code: lang === 'py' ? '1' : 'true', entity_id: `left-${lang}` });
    expect([begun.isThere(), ended.isThere()]).toEqual([true, false]);
  });

  test.each([
    ['py', (seconds: string) => `import subprocess; subprocess.run(["sleep", "${seconds}"])`],
    ['bash', (seconds: string) => `sleep ${seconds}; true`],
  ])('from a call of %s code without a session name ends what the code started', async (lang, code) => {
    const seconds = `600.${process.pid}${lang.length}`;
    const abort = new AbortController();
    const call = service.exec({ lang, code: code(seconds) }, { signal: abort.signal });
    const { root } = service.home;
    await waitFor('the code runs', () => processesOf(root, `sleep ${seconds}`).length > 0);
    abort.abort();
    await expect(call).rejects.toThrow();
    await allGone(root, `sleep ${seconds}`);
  });

  test.each(['/exec', '/exec/stream'])(
    'while %s still waits for its turn keeps the code from ever running',
    async (path) => {
      const mark = unusedMark(service.home);
      const entity_id = `turns${path.replaceAll('/', '-')}`;
      const busy = await service.stream({
        lang: 'py',
        entity_id,
        code: 'import time; print("x", flush=True); time.sleep(600)',
      });
      await busy.event('stream');
      const abort = new AbortController();
      const body = { lang: 'py', entity_id, code: `open("${mark.path}", "w")` };
      const waiting = service.post(path, body, { signal: abort.signal });
      await sleep(200);
      abort.abort();
      await expect(waiting).rejects.toThrow();
      await service.get('/'); // By now the service has seen the other connection end.
      busy.close();
      await service.python('1', { entity_id });
      expect(mark.isThere()).toBe(false);
    },
  );

  test('from a background run leaves it alone', async () => {
    const mark = unusedMark(service.home);
    const code = `import time\nprint("begun", flush=True)\ntime.sleep(0.7)\nopen("${mark.path}", "w")\nkept = 1`;
    const stream = await service.stream({ lang: 'py', code, background: true, entity_id: 'behind' });
    await stream.event('stream');
    stream.close();
    await waitFor('it has written its file', mark.isThere);
    expect((await service.python('print(kept)', { entity_id: 'behind' })).stdout).toBe('1\n');
  });
});

test('a silent stream sends heartbeats', async () => {
  const stream = await silent;
  expect(await stream.ended).toBe(true);
  expect(stream.comments.length).toBeGreaterThanOrEqual(1);
  expect(stream.events.map(({ type }) => type)).toEqual(['session', 'done']);
});

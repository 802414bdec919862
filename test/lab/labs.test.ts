import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createAdaptorServer } from '@hono/node-server';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createLabs, type OpenLocal } from '../../src/lab/labs.ts';
import { createLab } from '../../src/lab/local-lab.ts';
import { createLog } from '../../src/log.ts';
import { createLabApp } from '../../src/surfaces/lab/app.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { createToyEngine, type ToyEngine } from './toy-engine.ts';
import { toyLab } from './toy-lab.ts';

const context = { signal: new AbortController().signal, progress: () => {} };
const TOKEN = 'a-token-that-is-long-enough';

function openLabs(data = temporaryFolder()) {
  const opened: { model: string; engine: ToyEngine }[] = [];
  const openLocal: OpenLocal = async (model) => {
    if (model === 'missing') throw new Error('no such model');
    const engine = createToyEngine({ id: model, weights: model.padEnd(64, '0') });
    opened.push({ model, engine });
    return createLab(engine, { data, cache: data, project: data }, undefined);
  };
  const labs = createLabs({ data, cache: data, project: data, openLocal });
  onTestFinished(() => labs.close());
  return { labs, opened, data };
}

async function serve(lab = toyLab().lab): Promise<{ url: string; server: Server }> {
  const app = createLabApp({ lab, token: TOKEN, host: '127.0.0.1', log: createLog('silent') });
  return listening(createAdaptorServer({ fetch: app.fetch }) as Server);
}

async function listening(server: Server): Promise<{ url: string; server: Server }> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

describe('without an attach', () => {
  test('the default session is the model that ships, and the answer says so', async () => {
    const { labs, opened } = openLabs();
    const { answer, note } = await labs.call('default', 'colab_status', {}, context);
    expect(answer).toMatchObject({ ok: true, model_id: 'demo' });
    expect(note).toContain('demo');
    expect((await labs.call('default', 'colab_status', {}, context)).note).toBeUndefined();
    expect(opened.map(({ model }) => model)).toEqual(['demo']);
  });

  test('any other session is unknown, and the error says what to do', async () => {
    const { labs } = openLabs();
    await expect(labs.call('mine', 'colab_status', {}, context)).rejects.toMatchObject({
      code: 'unknown_session',
      message: expect.stringMatching(/no lab session mine. There are: default. Call colab_attach/),
    });
  });

  test('calls that come at once open one model', async () => {
    const { labs, opened } = openLabs();
    await Promise.all([1, 2, 3].map(() => labs.call('default', 'colab_status', {}, context)));
    expect(opened).toHaveLength(1);
  });
});

describe('attaching a model', () => {
  test('gives its health, and later calls go there', async () => {
    const { labs } = openLabs();
    expect(await labs.attach('mine', './model', undefined, context)).toMatchObject({
      ok: true,
      model_id: './model',
      d_model: 16,
    });
    expect((await labs.call('mine', 'colab_status', {}, context)).answer).toMatchObject({ model_id: './model' });
  });

  test('is remembered by the next process', async () => {
    const { labs, data } = openLabs();
    await labs.attach('mine', './model', undefined, context);
    const next = openLabs(data);
    expect((await next.labs.call('mine', 'colab_status', {}, context)).answer).toMatchObject({ model_id: './model' });
  });

  test('under two names opens it once; the last name that goes closes it', async () => {
    const { labs, opened } = openLabs();
    await labs.attach('a', 'one', undefined, context);
    await labs.attach('b', 'one', undefined, context);
    expect(opened).toHaveLength(1);
    await labs.attach('a', 'two', undefined, context);
    expect(opened[0]?.engine.isClosed).toBe(false);
    await labs.attach('b', 'two', undefined, context);
    expect(opened.map(({ engine }) => engine.isClosed)).toEqual([true, false]);
  });

  test('that cannot be opened changes nothing, and can be tried again', async () => {
    const { labs } = openLabs();
    await labs.attach('a', 'one', undefined, context);
    await expect(labs.attach('a', 'missing', undefined, context)).rejects.toThrow('no such model');
    await expect(labs.attach('a', 'missing', undefined, context)).rejects.toThrow('no such model');
    expect((await labs.call('a', 'colab_status', {}, context)).answer).toMatchObject({ model_id: 'one' });
  });
});

describe('attaching a lab by its URL', () => {
  test('works as a model here does, from capture to verdict', async () => {
    const { url } = await serve();
    const { labs } = openLabs();
    expect(await labs.attach('default', url, TOKEN, context)).toMatchObject({ model_id: 'toy', protocol: 1 });
    const { answer } = await labs.call('default', 'capture_acts', { prompt: 'the red cats', layers: [0] }, context);
    const here = await toyLab().call('capture_acts', { prompt: 'the red cats', layers: [0] });
    expect(answer).toEqual(here);
    const { answer: listed } = await labs.call('default', 'list_manifests', { limit: 1 }, context);
    expect(listed.manifests).toHaveLength(1);
  });

  test('tells of progress', async () => {
    const { url } = await serve();
    const { labs } = openLabs();
    await labs.attach('default', url, TOKEN, context);
    const told: string[] = [];
    const prompts = Array.from({ length: 2000 }, () => 'the red cats near the house');
    await labs.call(
      'default',
      'capture_acts',
      { prompts, layers: [0] },
      { ...context, progress: (line) => told.push(line) },
    );
    expect(told[0]).toMatch(/^Captured \d+ of 2000/);
  });

  test('errors come as they are', async () => {
    const { url } = await serve();
    const { labs } = openLabs();
    await labs.attach('default', url, TOKEN, context);
    const capture = (layers: unknown[]) => labs.call('default', 'capture_acts', { prompt: 'the', layers }, context);
    await expect(capture([9])).rejects.toMatchObject({
      code: 'invalid_input',
      message: expect.stringContaining('no layer 9'),
    });
    const evaluated = labs.call('default', 'probe_eval', { probe_id: 'x', capture_id: 'y' }, context);
    await expect(evaluated).rejects.toMatchObject({ code: 'unknown_probe' });
  });

  test('giving up reaches the other side', async () => {
    const { lab, engine } = toyLab();
    const { url } = await serve(lab);
    const { labs } = openLabs();
    await labs.attach('default', url, TOKEN, context);
    const stop = new AbortController();
    const gone = new Promise<void>((resolve) => {
      engine.run = (_, signal) => {
        signal?.addEventListener('abort', () => resolve());
        stop.abort();
        return new Promise(() => {});
      };
    });
    const call = labs.call(
      'default',
      'capture_acts',
      { prompt: 'the', layers: [0] },
      { ...context, signal: stop.signal },
    );
    await expect(call).rejects.toThrow(/abort/i);
    await gone;
  });

  test('keeps the token out of the file of sessions, and for its owner alone', async () => {
    const { url } = await serve();
    const { labs, data } = openLabs();
    await labs.attach('remote', url, TOKEN, context);
    const file = (name: string) => join(data, 'lab', name);
    expect(JSON.parse(readFileSync(file('sessions.json'), 'utf8'))).toMatchObject({
      remote: { endpoint: url, model_id: 'toy' },
    });
    expect(readFileSync(file('sessions.json'), 'utf8')).not.toContain(TOKEN);
    expect(statSync(file('tokens.json')).mode & 0o777).toBe(0o600);
    const next = openLabs(data);
    expect((await next.labs.call('remote', 'colab_status', {}, context)).answer).toMatchObject({ model_id: 'toy' });
  });

  test.each([
    ['without a token', undefined],
    ['with a wrong one', 'wrong'],
  ])('%s is refused', async (_, token) => {
    const { url } = await serve();
    const { labs } = openLabs();
    await expect(labs.attach('default', url, token, context)).rejects.toMatchObject({
      code: 'unauthorized',
      message: expect.stringContaining(url),
    });
  });

  test('where nobody is says so', async () => {
    const { url, server } = await serve();
    await new Promise((resolve) => server.close(resolve));
    const { labs } = openLabs();
    await expect(labs.attach('default', url, TOKEN, context)).rejects.toMatchObject({
      code: 'lab_unreachable',
      message: expect.stringMatching(/ECONNREFUSED.*cuvette lab serve/s),
    });
  });

  test('that is something else says so, and is not led elsewhere', async () => {
    const other = await listening(createServer((_, response) => response.writeHead(200).end('<html>')));
    const seen: unknown[] = [];
    const target = await listening(
      createServer((request, response) => {
        seen.push(request.headers);
        response.end();
      }),
    );
    const redirect = await listening(
      createServer((_, response) => response.writeHead(302, { location: target.url }).end()),
    );
    const { labs } = openLabs();
    for (const { url } of [other, redirect])
      await expect(labs.attach('default', url, TOKEN, context)).rejects.toMatchObject({ code: 'lab_unreachable' });
    expect(seen).toEqual([]);
  });

  test('of another protocol says so', async () => {
    const { url } = await listening(
      createServer((_, response) => response.end(`${JSON.stringify({ answer: { ok: true, protocol: 99 } })}\n`)),
    );
    await expect(openLabs().labs.attach('default', url, TOKEN, context)).rejects.toThrow(
      /speaks protocol 99, and this Cuvette 1/,
    );
  });

  test('over a network in the clear is refused', async () => {
    const { labs } = openLabs();
    await expect(labs.attach('default', 'http://gpu.example.org:8787', TOKEN, context)).rejects.toThrow(
      /not encrypted.*ssh -L/s,
    );
    await expect(labs.attach('default', 'https://user:pass@example.org', TOKEN, context)).rejects.toThrow(
      /address alone/,
    );
  });

  test('that has another model since is told, until it is attached again', async () => {
    const data = temporaryFolder();
    const engine = createToyEngine();
    const { url } = await serve(createLab(engine, { data, cache: data, project: data }, undefined));
    const first = openLabs();
    await first.labs.attach('remote', url, TOKEN, context);
    const description = engine.describe();
    engine.describe = () => ({ ...description, weights: 'other', id: 'another' });
    const changed = await serve(createLab(engine, { data, cache: data, project: data }, undefined));
    const sessions = join(first.data, 'lab', 'sessions.json');
    const moved = readFileSync(sessions, 'utf8').replaceAll(url, changed.url);
    writeFileSync(sessions, moved);
    const next = openLabs(first.data);
    await expect(next.labs.call('remote', 'colab_status', {}, context)).rejects.toThrow(
      /has another model now \(another\)/,
    );
    await next.labs.attach('remote', changed.url, TOKEN, context);
    expect((await next.labs.call('remote', 'colab_status', {}, context)).answer).toMatchObject({ model_id: 'another' });
  });
});

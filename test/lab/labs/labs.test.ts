import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createLabs, type LabsOptions, type OpenLocal } from '../../../src/lab/labs/labs.ts';
import { createLab } from '../../../src/lab/local/local-lab.ts';
import { EVENTS } from '../../../src/lab/remote/lab-protocol.ts';
import { temporaryFolder } from '../../temporary-folder.ts';
import { openCutProxy } from '../cut-proxy.ts';
import { createFakeLab } from '../fake-lab.ts';
import { serveLab, serveOther, TOKEN } from '../served.ts';
import { createToyEngine, type ToyEngine } from '../toy-engine.ts';
import { toyLab } from '../toy-lab.ts';

const context = { signal: new AbortController().signal, progress: () => {} };

function openLabs(data = temporaryFolder(), options: Partial<LabsOptions> = {}) {
  const opened: { model: string; engine: ToyEngine }[] = [];
  const openLocal: OpenLocal = async (model) => {
    if (model === 'missing') throw new Error('no such model');
    const engine = createToyEngine({ id: model, weights: model.padEnd(64, '0') });
    opened.push({ model, engine });
    return createLab(engine, { data, cache: data, project: data }, undefined);
  };
  const labs = createLabs({ data, cache: data, project: data, openLocal, ...options });
  onTestFinished(() => labs.close());
  return { labs, opened, data };
}

const notFound = JSON.stringify({ code: 'not_found', detail: 'There is no GET /health here.' });

function answering(status: number, type: string, text: string): RequestListener {
  return (_, response) => response.writeHead(status, { 'content-type': type }).end(text);
}

const serve = (lab = toyLab().lab) => serveLab(lab);

describe('without an attached lab,', () => {
  test('the default session is the model that ships, and the answer says so', async () => {
    const { labs, opened } = openLabs();
    const { answer, note } = await labs.call('default', 'colab_status', {}, context);
    expect(answer).toMatchObject({ ok: true, model_id: 'demo' });
    expect(note).toContain('demo');
    expect((await labs.call('default', 'colab_status', {}, context)).note).toBeUndefined();
    expect(opened.map(({ model }) => model)).toEqual(['demo']);
  });

  test('any other session name is unknown, and the error says what to do', async () => {
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
  test('returns its status, and later calls go there', async () => {
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

describe('detaching a lab', () => {
  test('forgets the name, its address and its token, here and for the next process', async () => {
    const { url } = await serve();
    const { labs, data } = openLabs();
    await labs.attach('mine', url, TOKEN, context);
    await labs.attach('other', url, TOKEN, context);
    expect(await labs.detach('mine')).toBe(url);
    const files = () => ['sessions.json', 'tokens.json'].map((name) => readFileSync(join(data, 'lab', name), 'utf8'));
    for (const text of files()) expect(text).not.toContain('mine');
    for (const one of [labs, openLabs(data).labs]) {
      await expect(one.call('mine', 'colab_status', {}, context)).rejects.toMatchObject({ code: 'unknown_session' });
      expect((await one.call('other', 'colab_status', {}, context)).answer).toMatchObject({ model_id: 'toy' });
      expect(await one.attached()).toEqual([{ name: 'other', endpoint: url }]);
    }
    await labs.detach('other');
    for (const text of files()) {
      expect(text).not.toContain(url);
      expect(text).not.toContain(TOKEN);
    }
  });

  test('that an earlier process attached contacts nobody', async () => {
    const { labs, data } = openLabs();
    await labs.attach('mine', './model', undefined, context);
    const next = openLabs(data);
    expect(await next.labs.detach('mine')).toBe('./model');
    expect(next.opened).toEqual([]);
    await expect(next.labs.detach('mine')).rejects.toMatchObject({
      code: 'unknown_session',
      message: 'There is no lab session mine to detach. None is attached.',
    });
  });

  test('aborts the calls of the name, and closes the model', async () => {
    const { labs, opened } = openLabs();
    await labs.attach('a', 'one', undefined, context);
    await labs.attach('b', 'one', undefined, context);
    await labs.detach('a');
    expect(opened[0]?.engine.isClosed).toBe(false);
    const begun = new Promise<void>((resolve) => {
      Object.assign(opened[0]?.engine ?? {}, {
        run: (_: unknown, signal: AbortSignal) => {
          resolve();
          return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
        },
      });
    });
    const answering = labs.call('b', 'capture_acts', { prompt: 'the red cats', layers: [0] }, context);
    const refused = expect(answering).rejects.toMatchObject({
      code: 'unknown_session',
      message: 'The lab session b was detached while this was at work.',
    });
    await begun;
    await labs.detach('b');
    await refused;
    expect(opened[0]?.engine.isClosed).toBe(true);
    await labs.attach('b', 'one', undefined, context);
    expect(opened).toHaveLength(2);
  });

  test('while it is being attached waits, and then removes it', async () => {
    const { url } = await serve();
    const { labs, data } = openLabs();
    const attaching = labs.attach('mine', url, TOKEN, context);
    expect(await labs.detach('mine')).toBe(url);
    await attaching;
    expect(await labs.attached()).toEqual([]);
    expect(readFileSync(join(data, 'lab', 'tokens.json'), 'utf8')).not.toContain(TOKEN);
    // Nor does a call bring it back that has found it on disk.
    await labs.attach('mine', url, TOKEN, context);
    const next = openLabs(data);
    const calling = next.labs.call('mine', 'colab_status', {}, context).catch(() => {});
    await next.labs.detach('mine');
    await calling;
    await expect(next.labs.call('mine', 'colab_status', {}, context)).rejects.toMatchObject({
      code: 'unknown_session',
    });
  });

  test('that was never stored works, too', async () => {
    const { labs, data } = openLabs(temporaryFolder(), { store: false });
    await labs.attach('default', './model', undefined, context);
    expect(await labs.detach('default')).toBe('./model');
    expect((await labs.call('default', 'colab_status', {}, context)).answer).toMatchObject({ model_id: 'demo' });
    expect(readdirSync(data)).not.toContain('sessions.json');
  });
});

describe('attaching a lab by its URL', () => {
  test('works as a local model does, from capture to verdict', async () => {
    const { url } = await serve();
    const { labs } = openLabs();
    expect(await labs.attach('default', url, TOKEN, context)).toMatchObject({ model_id: 'toy', protocol: 1 });
    const { answer } = await labs.call('default', 'capture_acts', { prompt: 'the red cats', layers: [0] }, context);
    const here = await toyLab().call('capture_acts', { prompt: 'the red cats', layers: [0] });
    expect(answer).toEqual(here);
    const { answer: listed } = await labs.call('default', 'list_manifests', { limit: 1 }, context);
    expect(listed.manifests).toHaveLength(1);
  });

  test('passes on progress', async () => {
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

  test('passes on errors unchanged', async () => {
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

  test('passes on an abort to the other side', async () => {
    const { lab, engine } = toyLab();
    const { url } = await serve(lab);
    const { labs } = openLabs();
    await labs.attach('default', url, TOKEN, context);
    const stop = new AbortController();
    const gone = new Promise<void>((resolve) => {
      engine.run = (_, signal) => {
        signal?.addEventListener('abort', () => resolve());
        stop.abort();
        return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));
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

  test('where nobody listens is reported', async () => {
    const { url, server } = await serve();
    await new Promise((resolve) => server.close(resolve));
    const { labs } = openLabs();
    await expect(labs.attach('default', url, TOKEN, context)).rejects.toMatchObject({
      code: 'lab_unreachable',
      message: expect.stringMatching(/ECONNREFUSED.*cuvette lab serve/s),
    });
  });

  test.each<[string, RequestListener, RegExp]>([
    ['a page', answering(200, 'text/html', '<html>'), /status 200 and text\/html/],
    ['a page that is not there', answering(404, 'text/html', '<html>'), /status 404 and text\/html/],
    ['JSON of something else', answering(200, 'application/json', '{"ok":true}'), /status 200 and application\/json/],
    ['lines of something else', answering(200, EVENTS, '[1, 2]\n'), /no event \(\[1, 2\]\)/],
    ['another service of ours', answering(404, 'application/problem+json', notFound), /There is no GET \/health here/],
  ])('that is %s says so', async (_, answer, why) => {
    const { url } = await serveOther(answer);
    await expect(openLabs().labs.attach('default', url, TOKEN, context)).rejects.toMatchObject({
      code: 'lab_unreachable',
      message: expect.stringMatching(
        new RegExp(`${url} does not answer as a lab does: .*${why.source}.*cuvette lab serve`),
      ),
    });
  });

  test('does not send its token along a redirect', async () => {
    const seen: unknown[] = [];
    const target = await serveOther((request, response) => {
      seen.push(request.headers);
      response.end();
    });
    const { url } = await serveOther((_, response) => response.writeHead(302, { location: target.url }).end());
    await expect(openLabs().labs.attach('default', url, TOKEN, context)).rejects.toMatchObject({
      code: 'lab_unreachable',
      message: expect.stringContaining(`it leads to ${target.url}`),
    });
    expect(seen).toEqual([]);
  });

  test('with https where it serves http is reported at once', async () => {
    const { url } = await serve();
    const told: string[] = [];
    const attached = openLabs().labs.attach('default', url.replace('http:', 'https:'), TOKEN, {
      ...context,
      progress: (line) => told.push(line),
    });
    await expect(attached).rejects.toMatchObject({
      code: 'lab_unreachable',
      message: expect.stringMatching(/does not answer: .*(SSL|TLS|wrong version).*cuvette lab serve/is),
    });
    expect(told).toEqual([]);
  });

  test('that speaks another protocol is reported', async () => {
    const { url } = await serveOther(answering(200, EVENTS, '{"answer": {"ok": true, "protocol": 99}}\n'));
    await expect(openLabs().labs.attach('default', url, TOKEN, context)).rejects.toThrow(
      /speaks protocol 99, and this Cuvette 1/,
    );
  });

  test('over an unencrypted network is refused', async () => {
    const { labs } = openLabs();
    await expect(labs.attach('default', 'http://gpu.example.org:8787', TOKEN, context)).rejects.toThrow(
      /not encrypted.*ssh -L/s,
    );
    await expect(labs.attach('default', 'https://user:pass@example.org', TOKEN, context)).rejects.toThrow(
      /address alone/,
    );
  });

  test('that has another model since then is reported, until it is attached again', async () => {
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

  test('reports a file of labs that cannot be read, and leaves it unchanged', async () => {
    const { url } = await serveLab(createFakeLab('kept').lab);
    const { data, labs } = openLabs();
    await labs.attach('a', url, TOKEN, context);
    for (const name of ['sessions.json', 'tokens.json']) {
      const path = join(data, 'lab', name);
      const whole = readFileSync(path, 'utf8');
      writeFileSync(path, whole.slice(0, -3));
      const next = openLabs(data).labs;
      await expect(next.attach('b', url, TOKEN, context)).rejects.toThrow(`${path}, which holds the labs`);
      await expect(next.call('a', 'colab_status', {}, context)).rejects.toMatchObject({ code: 'unreadable_file' });
      expect(readFileSync(path, 'utf8')).toBe(whole.slice(0, -3));
      writeFileSync(path, whole);
    }
    expect((await openLabs(data).labs.call('a', 'colab_status', {}, context)).answer).toMatchObject({ ok: true });
  });

  test('that gets another model while it is attached refuses calls, until it is attached again', async () => {
    const [before, after] = [createFakeLab('before'), createFakeLab('after')];
    const proxy = await openCutProxy((await serveLab(before.lab)).url);
    const { labs } = openLabs();
    await labs.attach('a', proxy.url, TOKEN, context);
    proxy.lead((await serveLab(after.lab)).url);
    proxy.cut();
    const capture = (name: string) => labs.call(name, 'capture_acts', { prompt: 'the', layers: [0] }, context);
    await labs.attach('b', proxy.url, TOKEN, context);
    for (const call of [capture('a'), labs.call('a', 'colab_status', {}, context)])
      await expect(call).rejects.toMatchObject({
        code: 'lab_changed',
        message: expect.stringMatching(/another model now \(after\).*colab_attach/),
      });
    expect([...before.calls, ...after.calls]).toEqual([]);
    const called = capture('b');
    (await after.started(0)).answer({ kept: 'b' });
    expect((await called).answer).toEqual({ kept: 'b' });
    await labs.attach('a', proxy.url, TOKEN, context);
    expect((await labs.call('a', 'colab_status', {}, context)).answer).toMatchObject({ model_id: 'after' });
  });
});

test('labs without a store keep names and tokens in memory, and write nothing', async () => {
  const data = temporaryFolder();
  const { lab } = createFakeLab();
  const { url } = await serveLab(lab);
  const { labs } = openLabs(data, { store: false });
  await labs.attach('remote', url, TOKEN, context);
  expect((await labs.call('remote', 'colab_status', {}, context)).answer).toMatchObject({ model_id: 'fake' });
  await expect(labs.call('other', 'colab_status', {}, context)).rejects.toThrow(/There are: default, remote\./);
  expect(readdirSync(data)).toEqual([]);
  const next = openLabs(data, { store: false });
  await expect(next.labs.call('remote', 'colab_status', {}, context)).rejects.toMatchObject({
    code: 'unknown_session',
  });
});

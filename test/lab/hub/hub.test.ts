import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { withLock } from '../../../src/file-lock.ts';
import { type FetchOptions, fetchFile, fetchModel } from '../../../src/lab/hub/hub.ts';
import type { HubProgress } from '../../../src/lab/hub/progress.ts';
import { temporaryFolder } from '../../temporary-folder.ts';
import { COMMIT, type FakeHub, LATER, openFakeHub, refuse, serveContent, toBuffers } from './fake-hub.ts';

const WEIGHTS = randomBytes(300_000);
const TOKEN = 'hf_only_for_the_hub';

const MODEL = {
  'config.json': '{"architectures": ["LlamaForCausalLM"]}',
  'tokenizer.json': '{}',
  'tokenizer_config.json': '{}',
  'model.safetensors': WEIGHTS,
  'pytorch_model.bin': 'not wanted',
  'README.md': '# Tiny',
  'onnx/model.safetensors': 'not wanted either',
};

function optionsFor(hub: FakeHub, more: Partial<FetchOptions> = {}) {
  const notices: string[] = [];
  const progress: HubProgress[] = [];
  const cache = more.cache ?? temporaryFolder();
  const options: FetchOptions = {
    cache,
    signal: new AbortController().signal,
    pause: 1,
    onNotice: (sentence) => notices.push(sentence),
    onProgress: (step) => progress.push(step),
    ...more,
    env: { HF_ENDPOINT: hub.endpoint, HF_HOME: join(cache, 'of-python'), ...more.env },
  };
  return { options, notices, progress, folder: join(cache, 'models', 'org--tiny', COMMIT) };
}

function requests(hub: FakeHub): string[] {
  return hub.asked.map(({ host, path }) => `${host} ${path.replace(/\?.*/, '')}`);
}

describe('fetching from the hub: a model', () => {
  it('is kept by its commit, with what the lab needs and nothing else', async () => {
    const hub = await openFakeHub(MODEL);
    const { options, folder } = optionsFor(hub);
    expect(await fetchModel('org/tiny', options)).toBe(folder);
    expect(readdirSync(folder).sort()).toEqual([
      'config.json',
      'model.safetensors',
      'tokenizer.json',
      'tokenizer_config.json',
    ]);
    expect(readFileSync(join(folder, 'model.safetensors')).equals(WEIGHTS)).toBe(true);
  });

  it('that is there is not fetched again', async () => {
    const hub = await openFakeHub(MODEL);
    const { options } = optionsFor(hub);
    await fetchModel('org/tiny', options);
    hub.asked.length = 0;
    await fetchModel('org/tiny', options);
    expect(requests(hub)).toEqual(['hub /api/models/org/tiny/revision/main']);
    await fetchModel('org/tiny', { ...options, revision: COMMIT });
    expect(hub.asked).toHaveLength(1);
  });

  it('is fetched anew when its branch has moved, beside the old one', async () => {
    const hub = await openFakeHub(MODEL);
    const { options, folder } = optionsFor(hub);
    await fetchModel('org/tiny', options);
    const repository = hub.repositories.get('org/tiny');
    if (repository) {
      repository.branches.main = LATER;
      repository.commits[LATER] = toBuffers({ ...MODEL, 'config.json': '{"later": true}' });
    }
    const later = await fetchModel('org/tiny', options);
    expect(readFileSync(join(later, 'config.json'), 'utf8')).toBe('{"later": true}');
    expect(readFileSync(join(folder, 'config.json'), 'utf8')).toBe(MODEL['config.json']);
  });

  it('in shards comes with those that its index names', async () => {
    const index = { weight_map: { a: 'model-1.safetensors', b: 'model-2.safetensors', c: 'model-1.safetensors' } };
    const { 'model.safetensors': _, ...rest } = MODEL;
    const hub = await openFakeHub({
      ...rest,
      'model.safetensors.index.json': JSON.stringify(index),
      'model-1.safetensors': 'one',
      'model-2.safetensors': 'two',
      'consolidated.safetensors': 'all, again',
    });
    const { options } = optionsFor(hub);
    const names = readdirSync(await fetchModel('org/tiny', options));
    expect(names.filter((name) => name.includes('safetensors')).sort()).toEqual([
      'model-1.safetensors',
      'model-2.safetensors',
      'model.safetensors.index.json',
    ]);
  });

  it.each([
    ['tokenizer.json', 'has no tokenizer.json'],
    ['model.safetensors', 'weights are in another format'],
  ])('without %s is refused, with what to do', async (missing, message) => {
    const files = Object.fromEntries(Object.entries(MODEL).filter(([name]) => name !== missing));
    const { options } = optionsFor(await openFakeHub(files));
    await expect(fetchModel('org/tiny', options)).rejects.toMatchObject({
      code: 'bad_model',
      message: expect.stringMatching(new RegExp(`${message}.*save_pretrained`)),
    });
  });

  it('whose index names files that are not there is refused', async () => {
    const { 'model.safetensors': _, ...rest } = MODEL;
    const index = { weight_map: { a: '../../../outside' } };
    const { options } = optionsFor(
      await openFakeHub({ ...rest, 'model.safetensors.index.json': JSON.stringify(index) }),
    );
    await expect(fetchModel('org/tiny', options)).rejects.toMatchObject({ code: 'bad_model' });
  });

  it('with a name alone follows to where it has moved', async () => {
    const hub = await openFakeHub(MODEL);
    const { options } = optionsFor(hub);
    hub.meddle = ({ path }, response) => {
      if (!/\/(api\/models\/)?old\//.test(path)) return false;
      response.writeHead(307, { location: path.replace('/old/', '/org/tiny/') }).end();
      return true;
    };
    const folder = await fetchModel('old', options);
    expect(folder).toBe(join(options.cache, 'models', 'old', COMMIT));
    expect(existsSync(join(folder, 'model.safetensors'))).toBe(true);
  });

  it('tells how far it has come, over all files', async () => {
    const hub = await openFakeHub(MODEL);
    const { options, progress } = optionsFor(hub);
    await fetchModel('org/tiny', options);
    const total = WEIGHTS.length + MODEL['config.json'].length + 4;
    expect(progress.at(-1)).toMatchObject({ received: total, total, percent: 100 });
    expect(progress.map((step) => step.received)).toEqual(progress.map((step) => step.received).sort((a, b) => a - b));
    expect(progress.every((step) => step.rate >= 0 && Number.isFinite(step.rate))).toBe(true);
  });
});

describe('a connection to the hub that is cut', () => {
  /** The store sends so many bytes of the weights, then hangs up; after `times`, all of them. */
  function cutAt(hub: FakeHub, bytes: number, times: number) {
    hub.meddle = ({ host, range }, response) => {
      if (host !== 'store' || times-- <= 0) return false;
      const start = Number(/\d+/.exec(range ?? '')?.[0] ?? 0);
      response.writeHead(range ? 206 : 200, {
        'content-length': String(WEIGHTS.length - start),
        ...(range && { 'content-range': `bytes ${start}-${WEIGHTS.length - 1}/${WEIGHTS.length}` }),
      });
      response.write(WEIGHTS.subarray(start, start + bytes), () => response.destroy());
      return true;
    };
  }

  it('is made again, and resumes the download', async () => {
    const hub = await openFakeHub(MODEL);
    const { options, folder } = optionsFor(hub);
    cutAt(hub, 100_000, 2);
    await fetchModel('org/tiny', options);
    const ranges = hub.asked.filter(({ host }) => host === 'store').map(({ range }) => range);
    expect(ranges[0]).toBeUndefined();
    expect(ranges.slice(1).every((range) => /^bytes=[1-9]\d*-$/.test(range ?? ''))).toBe(true);
    expect(readFileSync(join(folder, 'model.safetensors')).equals(WEIGHTS)).toBe(true);
  });

  it('for good leaves what came, and the next call resumes it', async () => {
    const hub = await openFakeHub(MODEL);
    const { options, folder } = optionsFor(hub);
    let isFirst = true;
    hub.meddle = ({ host }, response) => {
      if (host !== 'store') return false;
      response.writeHead(isFirst ? 200 : 503, isFirst ? { 'content-length': String(WEIGHTS.length) } : {});
      if (isFirst) response.write(WEIGHTS.subarray(0, 1000), () => response.destroy());
      else response.end();
      isFirst = false;
      return true;
    };
    await expect(fetchModel('org/tiny', options)).rejects.toMatchObject({
      code: 'download_failed',
      message: expect.stringContaining('1000 bytes are there already; the same command goes on from them'),
    });
    expect(existsSync(join(folder, 'model.safetensors'))).toBe(false);
    hub.meddle = () => false;
    hub.asked.length = 0;
    await fetchModel('org/tiny', options);
    expect(hub.asked.find(({ host }) => host === 'store')?.range).toBe('bytes=1000-');
    expect(readFileSync(join(folder, 'model.safetensors')).equals(WEIGHTS)).toBe(true);
    expect(readdirSync(folder).filter((name) => name.endsWith('.part'))).toEqual([]);
  });

  it('starts over where the server knows no ranges', async () => {
    const hub = await openFakeHub(MODEL);
    const { options, folder } = optionsFor(hub);
    let tries = 0;
    hub.meddle = ({ host }, response) => {
      if (host !== 'store') return false;
      tries++;
      response.writeHead(200, { 'content-length': String(WEIGHTS.length) });
      if (tries === 1) response.write(WEIGHTS.subarray(0, 5000), () => response.destroy());
      else response.end(WEIGHTS);
      return true;
    };
    await fetchModel('org/tiny', options);
    expect(tries).toBe(2);
    expect(readFileSync(join(folder, 'model.safetensors')).equals(WEIGHTS)).toBe(true);
  });

  it('is also one that falls silent', async () => {
    const hub = await openFakeHub(MODEL);
    const { options, folder } = optionsFor(hub, { patience: 200 });
    let isFirst = true;
    hub.meddle = ({ host }, response) => {
      if (host !== 'store' || !isFirst) return false;
      isFirst = false;
      response.writeHead(200, { 'content-length': String(WEIGHTS.length) });
      response.write(WEIGHTS.subarray(0, 5000));
      return true;
    };
    await fetchModel('org/tiny', options);
    expect(readFileSync(join(folder, 'model.safetensors')).equals(WEIGHTS)).toBe(true);
  });
});

describe('a file that arrives from the hub', () => {
  it('damaged is fetched once more', async () => {
    const hub = await openFakeHub(MODEL);
    const { options, folder } = optionsFor(hub);
    let isFirst = true;
    hub.meddle = ({ host }, response) => {
      if (host !== 'store' || !isFirst) return false;
      isFirst = false;
      serveContent(randomBytes(WEIGHTS.length), {}, response);
      return true;
    };
    await fetchModel('org/tiny', options);
    expect(readFileSync(join(folder, 'model.safetensors')).equals(WEIGHTS)).toBe(true);
  });

  it.each(['model.safetensors', 'config.json'])('damaged twice is refused, and not kept: %s', async (name) => {
    const hub = await openFakeHub(MODEL);
    const { options, folder } = optionsFor(hub);
    const length = Buffer.byteLength(MODEL[name as 'config.json']);
    hub.meddle = ({ host, path }, response) => {
      if (!path.includes(`/${name}`) || (host === 'hub' && name === 'model.safetensors')) return false;
      serveContent(Buffer.alloc(length, 'x'), {}, response);
      return true;
    };
    await expect(fetchModel('org/tiny', options)).rejects.toMatchObject({
      code: 'download_failed',
      message: expect.stringContaining(`${name} of org/tiny arrived damaged`),
    });
    expect(readdirSync(folder).filter((entry) => entry.startsWith(name))).toEqual([]);
  });

  it('is checked against entity tags where a mirror lists names alone', async () => {
    const hub = await openFakeHub(MODEL);
    hub.tellsBlobs = false;
    const { options, folder } = optionsFor(hub);
    await fetchModel('org/tiny', options);
    expect(readFileSync(join(folder, 'model.safetensors')).equals(WEIGHTS)).toBe(true);
    hub.meddle = ({ host }, response) => {
      if (host !== 'store') return false;
      serveContent(randomBytes(WEIGHTS.length), {}, response);
      return true;
    };
    const again = optionsFor(hub);
    await expect(fetchModel('org/tiny', again.options)).rejects.toThrow('arrived damaged');
  });

  it('gets its name only when it is complete', async () => {
    const hub = await openFakeHub(MODEL);
    const { options, folder } = optionsFor(hub);
    const seen: boolean[] = [];
    const onProgress = () => seen.push(existsSync(join(folder, 'model.safetensors')));
    await fetchModel('org/tiny', { ...options, onProgress });
    expect(seen.length).toBeGreaterThan(0);
    expect(seen).not.toContain(true);
  });
});

describe('the hub', () => {
  it('that fails for a while is asked again', async () => {
    const hub = await openFakeHub(MODEL);
    const { options, folder } = optionsFor(hub);
    let failures = 3;
    hub.meddle = (_, response) => {
      if (failures-- <= 0) return false;
      response.writeHead(500).end();
      return true;
    };
    expect(await fetchModel('org/tiny', options)).toBe(folder);
  });

  it.each([
    [401, undefined, 'then set HF_TOKEN'],
    [403, TOKEN, 'with the account that the token'],
  ])('that gives a model only to some says what to do (%i)', async (status, token, message) => {
    const hub = await openFakeHub(MODEL);
    const { options } = optionsFor(hub, token ? { token } : {});
    hub.meddle = ({ path }, response) => {
      if (!path.includes('/resolve/')) return false;
      refuse(response, status, 'GatedRepo');
      return true;
    };
    await expect(fetchModel('org/tiny', options)).rejects.toMatchObject({
      code: 'download_failed',
      message: expect.stringContaining(message),
    });
  });

  it('that refuses the token says so', async () => {
    const hub = await openFakeHub(MODEL);
    const { options } = optionsFor(hub, { token: TOKEN });
    hub.meddle = (_, response) => {
      response.writeHead(401).end();
      return true;
    };
    const failure = fetchModel('org/tiny', options);
    await expect(failure).rejects.toThrow('did not accept the token');
    await expect(failure).rejects.not.toThrow(TOKEN);
  });

  it('that has no such model, revision or file is told from one that fails', async () => {
    const hub = await openFakeHub(MODEL);
    const { options } = optionsFor(hub);
    await expect(fetchModel('org/absent', options)).rejects.toMatchObject({ code: 'unknown_model' });
    await expect(fetchModel('org/tiny', { ...options, revision: 'v9' })).rejects.toMatchObject({
      code: 'unknown_model',
      message: expect.stringContaining('no revision v9'),
    });
    await expect(fetchFile('org/tiny', 'sub/config.json', options)).rejects.toMatchObject({
      code: 'unknown_file',
      message: expect.stringContaining('It has config.json'),
    });
  });

  it('that is a login page is told from a hub', async () => {
    const hub = await openFakeHub(MODEL);
    const { options } = optionsFor(hub);
    hub.meddle = (_, response) => {
      response.end('<html>Welcome to the hotel</html>');
      return true;
    };
    await expect(fetchModel('org/tiny', options)).rejects.toThrow('does not answer as a hub does');
  });

  it('gets the token, and nobody else does', async () => {
    const hub = await openFakeHub(MODEL);
    const { options } = optionsFor(hub, { env: { HF_ENDPOINT: hub.endpoint, HF_TOKEN: TOKEN } });
    await fetchModel('org/tiny', options);
    const sent = (host: string) => hub.asked.filter((asked) => asked.host === host).map((asked) => asked.authorization);
    expect(new Set(sent('hub'))).toEqual(new Set([`Bearer ${TOKEN}`]));
    expect(new Set(sent('store'))).toEqual(new Set([undefined]));
  });

  it('gets no token where others could read along', async () => {
    const seen: (string | null)[] = [];
    const { options } = optionsFor(await openFakeHub(MODEL), {
      env: { HF_ENDPOINT: 'http://mirror.example', HF_TOKEN: TOKEN },
      fetch: async (_, init) => {
        seen.push(new Headers(init?.headers).get('authorization'));
        return new Response(null, { status: 404 });
      },
    });
    await expect(fetchModel('org/tiny', options)).rejects.toMatchObject({ code: 'unknown_model' });
    expect(seen).toEqual([null]);
  });

  it('cannot lead from a safe address to one that is not', async () => {
    const { options } = optionsFor(await openFakeHub(MODEL), {
      env: { HF_ENDPOINT: 'https://hub.example' },
      fetch: async () => new Response(null, { status: 302, headers: { location: 'http://hub.example/x' } }),
    });
    await expect(fetchModel('org/tiny', options)).rejects.toThrow('not safe to follow');
  });
});

describe('when the hub is unreachable,', () => {
  it('a complete copy is used, and the user is told', async () => {
    const hub = await openFakeHub(MODEL);
    const { options, notices, folder } = optionsFor(hub);
    await fetchModel('org/tiny', options);
    hub.close();
    expect(await fetchModel('org/tiny', options)).toBe(folder);
    expect(notices.join()).toMatch(/cannot be reached: .*ECONNREFUSED.*The copy of org\/tiny in .* is used/);
  });

  it('a copy that is not complete is not used, and the error says what to do', async () => {
    const hub = await openFakeHub(MODEL);
    const { options, folder } = optionsFor(hub);
    await fetchModel('org/tiny', options);
    writeFileSync(join(folder, 'model.safetensors'), WEIGHTS.subarray(1));
    hub.close();
    await expect(fetchModel('org/tiny', options)).rejects.toMatchObject({
      code: 'download_failed',
      message: expect.stringMatching(
        /no complete copy of org\/tiny .*hf download org\/tiny --local-dir .\/tiny .*demo/,
      ),
    });
  });

  it('a file that the repository never had is told from one that is not here', async () => {
    const hub = await openFakeHub({ 'a.json': '1', 'b.json': '2' });
    const { options } = optionsFor(hub);
    await fetchFile('org/tiny', 'a.json', options);
    hub.close();
    await expect(fetchFile('org/tiny', 'c.json', options)).rejects.toMatchObject({ code: 'unknown_file' });
    await expect(fetchFile('org/tiny', 'b.json', options)).rejects.toMatchObject({ code: 'download_failed' });
  });

  it('which HF_HUB_OFFLINE says of it, it is not asked', async () => {
    const hub = await openFakeHub(MODEL);
    const { options } = optionsFor(hub, { env: { HF_ENDPOINT: hub.endpoint, HF_HUB_OFFLINE: '1' } });
    await expect(fetchModel('org/tiny', options)).rejects.toThrow('HF_HUB_OFFLINE is set');
    expect(hub.asked).toEqual([]);
  });

  it("a copy in Python's cache is used, as it is instead of a download", async () => {
    const hub = await openFakeHub(MODEL);
    const { options } = optionsFor(hub);
    const root = join(options.cache, 'of-python', 'hub', 'models--org--tiny');
    const snapshot = join(root, 'snapshots', COMMIT);
    mkdirSync(snapshot, { recursive: true });
    mkdirSync(join(root, 'refs'));
    writeFileSync(join(root, 'refs', 'main'), COMMIT);
    for (const [name, content] of Object.entries(toBuffers(MODEL))) {
      if (!name.includes('/')) writeFileSync(join(snapshot, name), content);
    }
    expect(await fetchModel('org/tiny', options)).toBe(snapshot);
    expect(hub.asked).toHaveLength(1);
    hub.close();
    expect(await fetchModel('org/tiny', { ...options, cache: temporaryFolder() })).toBe(snapshot);
  });
});

describe('a name on the hub', () => {
  it.each([
    '../etc',
    'org/../../etc',
    '/etc/passwd',
    'org/name/more',
    'org//name',
    '.org/name',
    'org/name.git',
    'a--b/c',
    'org/na me',
    'https://huggingface.co/org/name',
    '',
    'org/name?x=1',
  ])('that is no id is refused before anything is asked: %j', async (id) => {
    const hub = await openFakeHub(MODEL);
    const { options } = optionsFor(hub);
    await expect(fetchModel(id, options)).rejects.toMatchObject({ code: 'invalid_input' });
    await expect(fetchFile(id, 'config.json', options)).rejects.toMatchObject({ code: 'invalid_input' });
    expect(hub.asked).toEqual([]);
  });

  it.each(['../x', '/etc/passwd', 'a//b', 'a/./b', 'a\\b', '', 'a\u0000b'])(
    'of a file stays in its folder: %j',
    async (file) => {
      const { options } = optionsFor(await openFakeHub(MODEL));
      await expect(fetchFile('org/tiny', file, options)).rejects.toMatchObject({ code: 'invalid_input' });
    },
  );

  it.each(['../main', 'a b', '-x', 'a//b', ''])('of a revision is one: %j', async (revision) => {
    const { options } = optionsFor(await openFakeHub(MODEL));
    await expect(fetchFile('org/tiny', 'config.json', { ...options, revision })).rejects.toMatchObject({
      code: 'invalid_input',
    });
  });
});

describe('several fetches at once', () => {
  it('fetch one model only once', async () => {
    const hub = await openFakeHub(MODEL);
    const { options, folder } = optionsFor(hub);
    const folders = await Promise.all([1, 2, 3].map(() => fetchModel('org/tiny', options)));
    expect(folders).toEqual([folder, folder, folder]);
    expect(hub.asked.filter(({ host }) => host === 'store')).toHaveLength(1);
  });

  it('leave no file of one that is aborted', async () => {
    const hub = await openFakeHub(MODEL);
    const { options, folder } = optionsFor(hub);
    const controller = new AbortController();
    hub.meddle = ({ host }, response) => {
      if (host !== 'store') return false;
      response.writeHead(200, { 'content-length': String(WEIGHTS.length) });
      response.write(WEIGHTS.subarray(0, 1000), () => controller.abort(new Error('called off')));
      return true;
    };
    await expect(fetchModel('org/tiny', { ...options, signal: controller.signal })).rejects.toThrow('called off');
    expect(existsSync(join(folder, 'model.safetensors'))).toBe(false);
    expect(await withLock(`${folder}.lock`, AbortSignal.timeout(10_000), async () => 'free')).toBe('free');
  });

  it('fetch a single file from a folder of its repository', async () => {
    const hub = await openFakeHub({ 'layer 3/sae#1.safetensors': 'weights', 'cfg.json': '{}' });
    const { options } = optionsFor(hub);
    const path = await fetchFile('org/tiny', 'layer 3/sae#1.safetensors', options);
    expect(readFileSync(path, 'utf8')).toBe('weights');
  });
});

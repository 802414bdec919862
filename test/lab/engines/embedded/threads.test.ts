import { readdirSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { expect, it, onTestFinished, vi } from 'vitest';
import type { Engine } from '../../../../src/lab/core/engine.ts';
import { createEmbeddedEngine } from '../../../../src/lab/engines/embedded/embedded-engine.ts';
import { openModelFolder } from '../../../../src/lab/models/open-model.ts';
import { openReference } from '../../parity-reference.ts';
import { openEngine, randomPrompts } from './open-engine.ts';

it('the embedded engine does not block the calling thread', async () => {
  const engine = await openEngine('qwen3');
  let turns = 0;
  const timer = setInterval(() => turns++, 1);
  await engine.run(longRequest(engine));
  clearInterval(timer);
  expect(turns).toBeGreaterThan(3);
});

it('the embedded engine stops an aborted request, and answers the next', async () => {
  const engine = await openEngine('qwen3');
  const controller = new AbortController();
  const stopped = engine.run(longRequest(engine), controller.signal);
  const queued = engine.run(longRequest(engine), controller.signal);
  setTimeout(() => controller.abort(new Error('enough')), 20);
  await expect(stopped).rejects.toThrow('enough');
  await expect(queued).rejects.toThrow('enough');
  await expect(engine.generate({ prompts: [[1]], maxNewTokens: 1 }, controller.signal)).rejects.toThrow('enough');

  const request = { prompts: randomPrompts(engine, [20, 300]), logits: { positions: [-1] } };
  const fresh = await openEngine('qwen3');
  expect(await engine.run(request)).toEqual(await fresh.run(request));
});

it('the embedded engine answers concurrent requests', async () => {
  const engine = await openEngine('gpt2');
  const requests = [3, 5, 8].map((length) => ({
    prompts: randomPrompts(engine, [length]),
    logits: { positions: [-1] },
  }));
  const answers = await Promise.all(requests.map((request) => engine.run(request)));
  for (const [i, request] of requests.entries()) expect(await engine.run(request)).toEqual(answers[i]);
});

it('closing the embedded engine ends its threads, and later requests are told so', async () => {
  const engine = await openEngine('qwen3', { threads: 3 });
  const waiting = engine.run(longRequest(engine));
  await Promise.all([engine.close(), expect(waiting).rejects.toThrow('The engine has been closed')]);
  await expect(engine.run({ prompts: [[1]] })).rejects.toThrow('The engine has been closed');
  await engine.close();
});

it.runIf(process.platform === 'linux')('the embedded engine leaves no thread behind', async () => {
  // Whatever Node starts once for all workers is there after the first.
  await (await openEngine('gpt2', { threads: 3 })).close();
  const before = threadCount();
  const engine = await openEngine('gpt2', { threads: 3 });
  expect(threadCount()).toBe(before + 3);
  await engine.run({ prompts: [[1, 2, 3]], logits: { positions: [-1] } });
  await engine.close();
  expect(threadCount()).toBe(before);
});

it.each([0, 1])('the embedded engine reports that thread %i was lost, and ends the others', async (lost) => {
  const workers: Worker[] = [];
  const unref = vi.spyOn(Worker.prototype, 'unref').mockImplementation(function (this: Worker) {
    workers.push(this);
  });
  onTestFinished(() => unref.mockRestore());
  const engine = await openEngine('qwen3');
  const exits = Promise.all(workers.map((worker) => new Promise((resolve) => worker.once('exit', resolve))));
  const waiting = engine.run(longRequest(engine));
  await Promise.all([
    workers[lost]?.terminate(),
    expect(waiting).rejects.toMatchObject({
      code: 'internal',
      message: expect.stringMatching(/^A thread of the embedded engine was lost: .* Open the model again\.$/),
    }),
  ]);
  await exits;
  await expect(engine.run({ prompts: [[1]] })).rejects.toThrow('was lost');
});

it('the embedded engine says why a model cannot be loaded, and leaves no thread behind', async () => {
  const model = await openModelFolder(openReference('gpt2').folder);
  const folder = '/nowhere/at/all';
  await expect(createEmbeddedEngine({ model: { ...model, folder }, id: 'gpt2' })).rejects.toMatchObject({
    code: 'bad_model',
    message: expect.stringContaining(folder),
  });
});

it('the embedded engine stops opening a model when its signal is aborted', async () => {
  const model = await openModelFolder(openReference('gpt2').folder);
  const controller = new AbortController();
  const opening = createEmbeddedEngine({ model, id: 'gpt2', signal: controller.signal });
  controller.abort(new Error('enough'));
  await expect(opening).rejects.toThrow('enough');
  await expect(createEmbeddedEngine({ model, id: 'gpt2', signal: controller.signal })).rejects.toThrow('enough');
});

/** Takes long enough to be stopped. */
function longRequest(engine: Engine) {
  const prompts = randomPrompts(
    engine,
    Array.from({ length: 60 }, () => 200),
  );
  return { prompts, surprise: true };
}

function threadCount(): number {
  return readdirSync('/proc/self/task').length;
}

import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openLabThread } from '../../../src/lab/local/lab-thread.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

const MODEL = fileURLToPath(new URL('../fixtures/parity/smollm', import.meta.url));
const context = { signal: new AbortController().signal, progress: () => {} };

async function openThread(model = MODEL) {
  const folder = temporaryFolder();
  const lab = await openLabThread({ model, data: folder, cache: folder, project: folder }, context);
  onTestFinished(() => lab.close());
  return lab;
}

describe('a lab in a thread', () => {
  test('answers as one in this thread, with progress', async () => {
    const lab = await openThread();
    const told: string[] = [];
    const prompts = Array.from({ length: 1000 }, (_, i) => `the cat sat on the mat number ${i}`);
    const listening = { ...context, progress: (message: string) => told.push(message) };
    expect(await lab.call('capture_acts', { prompts, layers: [0] }, listening)).toMatchObject({ n_prompts: 1000 });
    expect(told[0]).toMatch(/^Captured \d+ of 1000/);
  });

  test('does not block this thread while it computes', async () => {
    const lab = await openThread();
    const prompts = Array.from({ length: 400 }, (_, i) => `the cat sat on the mat number ${i}`);
    const labels = prompts.map((_, i) => i % 2);
    let turns = 0;
    const timer = setInterval(() => {
      turns += 1;
    }, 1);
    const trained = await lab.call('train_probe', { probe_id: 'a', prompts, labels, layer: 1, c: 1e6 }, context);
    clearInterval(timer);
    expect(trained).toMatchObject({ n_train: 280 });
    expect(turns).toBeGreaterThan(5);
  });

  test('passes on errors with their codes', async () => {
    const lab = await openThread();
    const call = lab.call('capture_acts', { prompt: 'the cat', layers: [99] }, context);
    await expect(call).rejects.toMatchObject({
      code: 'invalid_input',
      message: expect.stringContaining('no layer 99'),
    });
  });

  test('starts again after an internal error', async () => {
    const lab = await openThread();
    const { capture_id } = await lab.call('capture_acts', { prompt: 'the cat', layers: [0] }, context);
    await expect(lab.call('no_such_primitive', {}, context)).rejects.toMatchObject({ code: 'internal' });
    const again = await Promise.all([1, 2].map(() => lab.call('colab_status', {}, context)));
    expect(again).toMatchObject([{ captures_in_memory: 1 }, { captures_in_memory: 1 }]);
    expect(capture_id).toMatch(/^cap_/);
  });

  test('starts again for all callers, also when the first of them aborts', async () => {
    const lab = await openThread();
    await expect(lab.call('no_such_primitive', {}, context)).rejects.toMatchObject({ code: 'internal' });
    const stop = new AbortController();
    const first = lab.call('colab_status', {}, { ...context, signal: stop.signal });
    const second = lab.call('colab_status', {}, context);
    stop.abort(new Error('enough'));
    await expect(first).rejects.toThrow('enough');
    expect(await second).toMatchObject({ captures_in_memory: 0 });
  });

  test('aborts calls whose callers give up', async () => {
    const lab = await openThread();
    const stop = new AbortController();
    const prompts = Array.from({ length: 20_000 }, (_, i) => `the cat sat on the mat number ${i}`);
    const giving = { signal: stop.signal, progress: () => stop.abort() };
    await expect(lab.call('capture_acts', { prompts, layers: [0] }, giving)).rejects.toThrow(/abort/i);
    expect(await lab.call('colab_status', {}, context)).toMatchObject({ captures_in_memory: 0 });
  });

  test('rejects all calls once it is closed', async () => {
    const lab = await openThread();
    const prompts = Array.from({ length: 20_000 }, (_, i) => `the cat sat on the mat number ${i}`);
    const call = lab.call('capture_acts', { prompts, layers: [0] }, context);
    const ended = expect(call).rejects.toMatchObject({ code: 'internal' });
    await lab.close();
    await ended;
  });
});

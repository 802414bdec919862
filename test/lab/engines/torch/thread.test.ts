import { join } from 'node:path';
import { expect, inject, it, onTestFinished } from 'vitest';
import { openLabThread } from '../../../../src/lab/local/lab-thread.ts';
import { withoutSecrets } from '../../../../src/sessions/environment-variables.ts';
import { temporaryFolder } from '../../../temporary-folder.ts';
import { openReference } from '../../parity-reference.ts';

const context = { signal: new AbortController().signal, progress: () => {} };

it('a lab thread keeps the model and the variables of code when a request to the torch engine fails', async () => {
  const folder = temporaryFolder();
  const places = { data: folder, cache: folder, project: folder };
  const torch = { python: inject('torchPython'), threads: 1, runtime: join(folder, 'r'), env: withoutSecrets() };
  const lab = await openLabThread({ model: openReference('smollm').folder, ...places, torch }, context);
  onTestFinished(() => lab.close());
  const run = (code: string, name: string) =>
    lab.call('run_code', { code, run: name, cell: 1, timeout: null, limit: 1000 }, context);
  const first = await run('kept = 41; encode = tokenizer.encode; tokenizer.encode = None', 'a');
  const capture = () => lab.call('capture_acts', { prompt: 'the cat', layers: [0] }, context);
  await expect(capture()).rejects.toMatchObject({ code: 'internal' });
  const second = await run('assert kept == 41; tokenizer.encode = encode', 'b');
  expect(second).toMatchObject({ life: first.life, ending: { status: 'ok' } });
  expect(await capture()).toMatchObject({ n_prompts: 1 });
});

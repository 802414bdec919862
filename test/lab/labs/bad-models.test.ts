/** Tests the errors for models that cannot be attached. */

import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { createLabs } from '../../../src/lab/labs/labs.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

const MODEL = fileURLToPath(new URL('../fixtures/parity/smollm', import.meta.url));
const context = { signal: new AbortController().signal, progress: () => {} };

function attach(spoil: (folder: string) => void, endpoint?: string) {
  const [folder, data] = [temporaryFolder(), temporaryFolder()];
  cpSync(MODEL, folder, { recursive: true });
  spoil(folder);
  const labs = createLabs({ data, cache: data, project: data });
  return labs.attach('mine', endpoint ?? folder, undefined, context).finally(() => labs.close());
}

const weightsOf = (folder: string) =>
  join(folder, readdirSync(folder).find((name) => name.startsWith('model') && name.endsWith('.safetensors')) ?? '');

test.each([
  ['no tokenizer', (folder: string) => rmSync(join(folder, 'tokenizer.json')), 'bad_model', /tokenizer\.json/],
  ['no config', (folder: string) => rmSync(join(folder, 'config.json')), 'bad_model', /config\.json/],
  ['no weights', (folder: string) => rmSync(weightsOf(folder)), 'bad_model', /safetensors/],
  [
    'an architecture that nobody knows',
    (folder: string) => {
      const config = JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8'));
      writeFileSync(join(folder, 'config.json'), JSON.stringify({ ...config, architectures: ['WaveNetForCausalLM'] }));
    },
    'bad_model',
    /WaveNetForCausalLM/,
  ],
  [
    'weights that are cut off',
    (folder: string) => writeFileSync(weightsOf(folder), readFileSync(weightsOf(folder)).subarray(0, 5000)),
    'bad_model',
    /not a proper safetensors file/,
  ],
  [
    'a tokenizer that is none',
    (folder: string) => writeFileSync(join(folder, 'tokenizer.json'), '{'),
    'bad_model',
    /tokenizer/,
  ],
])('attaching a model with %s is refused, with the reason', async (_, spoil, code, message) => {
  await expect(attach(spoil)).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
});

test.each([
  ['/nowhere/at/all', 'unknown_model', /no folder \/nowhere\/at\/all/],
  ['./here', 'unknown_model', /no folder/],
  ['what is this?', 'unknown_model', /Give demo, a folder/],
])('attaching a model that is not there (%s) says that it is unknown', async (endpoint, code, message) => {
  await expect(attach(() => {}, endpoint)).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
});

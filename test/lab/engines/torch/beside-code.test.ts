import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ForwardRequest, Intervention } from '../../../../src/lab/core/engine.ts';
import type { TorchEngine } from '../../../../src/lab/engines/torch/torch-engine.ts';
import { createRandom } from '../../../../src/lab/statistics/random.ts';
import { openLabStore } from '../../../../src/lab/store/store.ts';
import { temporaryFolder } from '../../../temporary-folder.ts';
import { openReference } from '../../parity-reference.ts';
import { evaluate } from './evaluate.ts';
import { useTorch } from './open-torch-engine.ts';

const open = useTorch();
let engine: TorchEngine;
beforeAll(async () => {
  engine = await open(openReference('gpt2').folder);
});
afterAll(() => engine.close());

const PROMPT = [5, 6, 7, 8];
const LOGITS: ForwardRequest = { prompts: [PROMPT], logits: { positions: [-1] } };

it('the torch engine gives code the model and the tokenizer, and the same results', async () => {
  const best = await evaluate(
    engine,
    `model(__import__("torch").tensor([${JSON.stringify(PROMPT)}])).logits[0, -1].argmax().item()`,
  );
  const [result] = await engine.run(LOGITS);
  const logits = result?.logits ?? new Float32Array();
  expect(logits.indexOf(Math.max(...logits))).toBe(Number(best));
  const [tokens] = await engine.tokenize(['The keys']);
  expect(JSON.parse(await evaluate(engine, 'tokenizer("The keys").input_ids'))).toEqual(tokens);
});

it('the torch engine leaves no other variable for code', async () => {
  const fresh = await open(openReference('gpt2').folder);
  const names = await evaluate(fresh, 'sorted(name for name in globals() if not name.startswith("_"))');
  await fresh.close();
  expect(names).toBe("['captures', 'model', 'tokenizer']");
});

it('the torch engine and code can use the model at the same time', async () => {
  const steer: Intervention = {
    kind: 'add',
    point: { layer: 0, place: 'resid_post' },
    positions: { from: 0 },
    vector: createRandom(1, 'vector')
      .direction(engine.describe().width)
      .map((value) => 50 * value),
  };
  const steered: ForwardRequest = { ...LOGITS, variants: [{ prompt: 0, interventions: [steer] }] };
  const expected = await engine.run(steered);
  const cell = engine.execute(`
import time, torch
tokens = torch.tensor([${JSON.stringify(PROMPT)}])
first = model(tokens).logits
until, runs, same = time.monotonic() + 2, 0, True
while time.monotonic() < until:
    same = same and torch.equal(model(tokens).logits, first)
    runs += 1
`);
  let isRunning = true;
  void cell.finally(() => {
    isRunning = false;
  });
  let asked = 0;
  for (; isRunning; asked++) expect(await engine.run(steered)).toEqual(expected);
  expect((await cell).ending.status).toBe('ok');
  expect(asked).toBeGreaterThan(10);
  expect(await evaluate(engine, 'same and runs > 10')).toBe('True');
});

it('the torch engine refuses to compute while code has hooks on the model, and works again once they are removed', async () => {
  await engine.execute('handle = model.transformer.h[1].register_forward_hook(lambda module, args, output: None)');
  await expect(engine.run(LOGITS)).rejects.toMatchObject({
    code: 'invalid_input',
    message: expect.stringMatching(/^Code has put hooks on the model, at transformer\.h\.1\. .*handle\.remove\(\)/),
  });
  await engine.execute('handle.remove()');
  await expect(engine.run(LOGITS)).resolves.toHaveLength(1);
  // Those that transformers itself leaves behind are of no account.
  await engine.execute('len(model(tokens, output_hidden_states=True).hidden_states)');
  await expect(engine.run(LOGITS)).resolves.toHaveLength(1);
});

it.each([
  ['changed', 'model.transformer.h[0].mlp.c_proj.weight.mul_(2)'],
  ['changed by way of their data', 'model.transformer.h[0].mlp.c_proj.weight.data.mul_(5)'],
])('the torch engine refuses to compute with weights that code has %s', async (_, code) => {
  const changed = await open(openReference('gpt2').folder);
  try {
    await changed.execute(code);
    await expect(changed.run(LOGITS)).rejects.toMatchObject({
      code: 'invalid_input',
      message: expect.stringMatching(/^Code has changed the model's weights, .*save_pretrained/),
    });
  } finally {
    await changed.close();
  }
});

it('the torch engine refuses to compute while code has replaced a forward method, and works again once it is restored', async () => {
  await engine.execute('model.transformer.h[1].mlp.forward = lambda x: x');
  await expect(engine.run(LOGITS)).rejects.toMatchObject({
    code: 'invalid_input',
    message: expect.stringMatching(/^Code has replaced the method forward, at transformer\.h\.1\.mlp\. /),
  });
  await engine.execute('del model.transformer.h[1].mlp.forward');
  await expect(engine.run(LOGITS)).resolves.toHaveLength(1);
});

it('the torch engine shows code the captures of the lab, as tensors', async () => {
  const store = openLabStore(temporaryFolder(), engine.describe());
  const { width, id, weights, tokenizer } = engine.describe();
  const points = ['blocks.0.hook_resid_post', 'blocks.1.hook_mlp_out'];
  const draft = await store.captures.draft({ points, positions: [-1], prompts: 3, width });
  const rows = Float32Array.from({ length: 3 * width }, (_, i) => i);
  for (const point of points) await draft.append(point, -1, rows);
  const activations = await draft.finish();
  const positions = [{ spec: 'end_question', position: -1 }];
  const about = { prompts: ['a', 'b', 'c'], tokenCounts: [1, 1, 1], labels: [0, 1, 1] as (0 | 1)[] };
  const model = { id, weights, tokenizer };
  await draft.keep('cap_1', { format: 1, model, points, positions, width, ...about, data: '', activations });
  await engine.showCaptures(join(store.folder, 'captures'));
  expect(await evaluate(engine, 'captures')).toBe('captures: cap_1');
  expect(await evaluate(engine, 'captures["cap_1"].shape')).toBe(`torch.Size([2, 3, ${width}])`);
  expect(await evaluate(engine, 'captures["cap_1"][1, 2, 0].item()')).toBe(`${2 * width}.0`);
  expect(await evaluate(engine, 'captures.record("cap_1")["labels"]')).toBe('[0, 1, 1]');
  const { outputs } = await engine.execute('captures["cap_2"]');
  expect(outputs.at(-1)).toMatchObject({
    ename: 'KeyError',
    evalue: expect.stringContaining('There is no capture cap_2'),
  });
});

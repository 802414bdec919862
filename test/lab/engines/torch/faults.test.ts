import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decide } from '../../../../src/lab/causality/decide.ts';
import { runProtocol } from '../../../../src/lab/causality/protocol.ts';
import type { Engine, ForwardRequest } from '../../../../src/lab/core/engine.ts';
import type { TorchEngine } from '../../../../src/lab/engines/torch/torch-engine.ts';
import { temporaryFolder } from '../../../temporary-folder.ts';
import { familyOf } from '../../ground-truth/families.ts';
import { writeModelFolder } from '../../ground-truth/models/model-folder.ts';
import { largestDifference, openReference } from '../../parity-reference.ts';
import { evaluate } from './evaluate.ts';
import { useTorch } from './open-torch-engine.ts';

const open = useTorch();
const { folder } = openReference('qwen3');
const SHORT: ForwardRequest = { prompts: [[1, 2, 3]], logits: { positions: [-1], tokens: [4, 5] } };
/** Takes seconds. */
const LONG: ForwardRequest = {
  prompts: Array.from({ length: 200 }, (_, i) => Array.from({ length: 900 }, (_, j) => (i * 7 + j * 3) % 200)),
  surprise: true,
};

describe('a Python that holds a model and dies', () => {
  let engine: TorchEngine;
  beforeAll(async () => {
    engine = await open(folder);
  });
  afterAll(() => engine.close());

  it('is reported at once when it is killed as it computes, and the next call loads the model again', async () => {
    const before = await engine.run(SHORT);
    const pid = Number(await evaluate(engine, '__import__("os").getpid()'));
    const captures = temporaryFolder();
    await engine.showCaptures(captures);
    const lost = [engine.run(LONG), engine.run(SHORT)];
    setTimeout(() => process.kill(pid, 'SIGKILL'), 300);
    for (const one of lost) {
      await expect(one).rejects.toMatchObject({
        code: 'interpreter_failed',
        message: expect.stringMatching(/ended \(SIGKILL\).*Ask again: the model is then loaded again/),
      });
    }
    expect(await engine.run(SHORT)).toEqual(before);
    expect(Number(await evaluate(engine, '__import__("os").getpid()'))).not.toBe(pid);
    expect(await evaluate(engine, 'captures.folder')).toBe(`'${captures}'`);
  });

  it('ends a protocol with a clear error, and the protocol asked again has its verdict', async () => {
    const place = temporaryFolder();
    const { files, question } = familyOf('causal').make(1);
    writeModelFolder(place, files);
    const toy = await open(place);
    try {
      const pid = Number(await evaluate(toy, '__import__("os").getpid()'));
      let runs = 0;
      const doomed: Engine = {
        ...toy,
        run(request, signal) {
          runs += 1;
          if (runs === 5) process.kill(pid, 'SIGKILL');
          return toy.run(request, signal);
        },
      };
      const context = { version: '0.0.0', signal: new AbortController().signal, family: 1 };
      await expect(runProtocol(doomed, question, context)).rejects.toMatchObject({ code: 'interpreter_failed' });
      expect(decide(await runProtocol(toy, question, context)).verdict).toBe('causal');
    } finally {
      await toy.close();
    }
  });

  it('is reported when code has ended it, and code finds the model again', async () => {
    const { ending } = await engine.execute('import os; os.kill(os.getpid(), 9)');
    expect(ending.death).toMatchObject({ signal: 'SIGKILL' });
    expect(await evaluate(engine, 'type(model).__name__')).toBe("'Qwen3ForCausalLM'");
    expect(await engine.run(SHORT)).toHaveLength(1);
  });

  it('is started again when the process beside it was killed', async () => {
    const keeper = Number(await evaluate(engine, '__import__("os").getppid()'));
    const lost = engine.run(LONG);
    setTimeout(() => process.kill(keeper, 'SIGKILL'), 300);
    await expect(lost).rejects.toMatchObject({ code: 'interpreter_failed' });
    expect(await engine.run(SHORT)).toHaveLength(1);
  });

  it('loads the model again after it could not, and no other model in its place', async () => {
    const place = copy();
    const moved = await open(place);
    try {
      const kill = 'import os; os.kill(os.getpid(), 9)';
      const weights = join(place, 'model.safetensors');
      const bytes = readFileSync(weights);
      rmSync(weights);
      await moved.execute(kill);
      await expect(moved.run(SHORT)).rejects.toMatchObject({ code: 'bad_model' });
      writeFileSync(weights, bytes);
      expect(await moved.run(SHORT)).toHaveLength(1);
      bytes.writeFloatLE(0.5, bytes.length - 8);
      writeFileSync(weights, bytes);
      await moved.execute(kill);
      await expect(moved.run(SHORT)).rejects.toThrow(`The model in ${place} is not the one that was opened`);
    } finally {
      await moved.close();
    }
  });

  it('is asked no more once the engine is closed', async () => {
    const closed = await open(folder);
    const waiting = closed.run(LONG);
    await Promise.all([closed.close(), expect(waiting).rejects.toThrow('The engine has been closed')]);
    await expect(closed.run(SHORT)).rejects.toThrow('The engine has been closed');
    await closed.close();
  });
});

describe('a request to the torch engine', () => {
  let engine: TorchEngine;
  beforeAll(async () => {
    engine = await open(folder);
  });
  afterAll(() => engine.close());

  it('ends when its signal is aborted, and the next request is answered', async () => {
    const controller = new AbortController();
    const stopped = [engine.run(LONG, controller.signal), engine.run(LONG, controller.signal)];
    setTimeout(() => controller.abort(new Error('enough')), 100);
    for (const one of stopped) await expect(one).rejects.toThrow('enough');
    expect(await engine.run(SHORT)).toHaveLength(1);
  });

  it('ends also where its answer cannot be sent, and so does the next request', async () => {
    await engine.execute(
      'import torch; encode = tokenizer.encode; tokenizer.encode = lambda text, **_: torch.tensor([1, 2])',
    );
    await expect(engine.tokenize(['the cat'])).rejects.toMatchObject({
      code: 'internal',
      message: expect.stringMatching(/Tensor is not JSON serializable.*reset the interpreter/),
    });
    await engine.execute('tokenizer.encode = encode');
    expect(await engine.run(SHORT)).toHaveLength(1);
    expect(await engine.tokenize(['the cat'])).toHaveLength(1);
  });

  it('is refused as by the embedded engine', async () => {
    await expect(engine.run({ prompts: [[]] })).rejects.toMatchObject({ code: 'invalid_input' });
    const taps = [{ point: { layer: 2, place: 'resid_post' as const }, positions: [0] }];
    await expect(engine.run({ prompts: [[1]], taps })).rejects.toThrow('There is no layer 2');
  });

  it('is split where memory is short, and refused where it is too short for one prompt', async () => {
    const prompts = LONG.prompts.slice(0, 4).map((prompt) => prompt.slice(0, 50));
    const expected = await engine.run({ prompts, surprise: true });
    await engine.execute(`most_tokens = 60${SHORT_OF_MEMORY}`);
    const results = await engine.run({ prompts: prompts.map((prompt) => [...prompt]), surprise: true });
    results.forEach(({ surprise }, i) => {
      const theirs = expected[i]?.surprise?.logProbabilities ?? [];
      expect(largestDifference(surprise?.logProbabilities ?? [], theirs)).toBeLessThan(1e-4);
    });
    await engine.execute('most_tokens = 10');
    await expect(engine.run({ prompts: [prompts[3]?.slice(1) ?? []], surprise: true })).rejects.toMatchObject({
      code: 'too_large',
      message: expect.stringMatching(/The memory of cpu is not enough for the prompts, even for one at a time/),
    });
    await engine.execute('torch.nn.functional.embedding = kept');
    expect(await engine.run(SHORT)).toHaveLength(1);
  });
});

/** As if the device had room for so many tokens at a time. */
const SHORT_OF_MEMORY = `
import torch
kept = torch.nn.functional.embedding
def embedding(tokens, *args, **kwargs):
    if tokens.numel() > most_tokens:
        raise torch.OutOfMemoryError("CUDA out of memory")
    return kept(tokens, *args, **kwargs)
torch.nn.functional.embedding = embedding
`;

describe('a model that the torch engine cannot load', () => {
  it('is named where its weights lack a tensor, and nothing is filled in for it', async () => {
    const broken = copy();
    edit(join(broken, 'config.json'), (config) => ({ ...config, num_hidden_layers: 3, layer_types: undefined }));
    await expect(open(broken)).rejects.toMatchObject({
      code: 'bad_model',
      message: expect.stringMatching(/lack .*layers\.2\..* and \d+ more, which Qwen3ForCausalLM needs/),
    });
  });

  it('is named where transformers does not know its kind, or it wants to run code of its own', async () => {
    const broken = copy();
    edit(join(broken, 'config.json'), (config) => ({
      ...config,
      model_type: 'of-its-own',
      auto_map: { AutoConfig: 'own.Config' },
    }));
    writeFileSync(join(broken, 'own.py'), 'raise SystemExit("this must not be run")');
    await expect(open(broken)).rejects.toMatchObject({
      code: 'bad_model',
      message: expect.stringContaining('which Cuvette does not run'),
    });
  });

  it('ends loading when its signal is aborted', async () => {
    const controller = new AbortController();
    const opening = open(folder, { signal: controller.signal });
    setTimeout(() => controller.abort(new Error('enough')), 20);
    await expect(opening).rejects.toThrow('enough');
  });

  it('is named where a file is missing', async () => {
    const broken = copy();
    rmSync(join(broken, 'model.safetensors'));
    await expect(open(broken)).rejects.toMatchObject({
      code: 'bad_model',
      message: expect.stringContaining('model.safetensors'),
    });
  });

  it('says what a quantised one takes', async () => {
    await expect(open(folder, { quantization: '4bit' })).rejects.toMatchObject({
      code: 'runtime_missing',
      message: expect.stringContaining('bitsandbytes'),
    });
  });

  it('says which Python has no torch', async () => {
    await expect(open(folder, { python: 'python3', preload: [] })).rejects.toMatchObject({
      code: 'runtime_missing',
      message: expect.stringMatching(/No module named 'torch'.*pip install torch transformers/),
    });
  });
});

function copy(): string {
  const target = join(temporaryFolder(), 'model');
  cpSync(folder, target, { recursive: true });
  return target;
}

function edit(path: string, change: (json: Record<string, unknown>) => object): void {
  writeFileSync(path, JSON.stringify(change(JSON.parse(readFileSync(path, 'utf8')))));
}

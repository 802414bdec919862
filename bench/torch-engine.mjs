/**
 * Measures the lab's torch engine beside plain transformers in the same Python, on the same model, in one run: what a capture costs over a bare
 * forward pass, and the protocol beside as many interventions one by one with hooks; and what a call to a lab elsewhere costs over one here.
 * Prints a table, writes JSON.
 */

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createTorchEngine, createZygotes } from '../build/lab.js';
import { measureRouter } from './lab-router.mjs';
import { print, row, say } from './table.mjs';
import { timeProtocol } from './timed-protocol.mjs';

const root = resolve(import.meta.dirname, '..');
const home = join(root, 'node_modules', '.cache', 'cuvette-bench', 'lab');
const demo = join(root, 'models', 'demo');
const python = process.env.CUVETTE_TORCH_PYTHON ?? 'python3';
const threads = Math.min(8, availableParallelism());
const ROUNDS = 15;
const VOCABULARY = 50_257;
/** So few that as many interventions can be made one by one within a minute. */
const PAIRS = 16;
const NEUTRAL = 8;
/** Seconds that a call may take longer because the lab is elsewhere, without the network's own. */
const ROUTER = 0.005;

const project = mkdtempSync(join(tmpdir(), 'cv-'));
const zygotes = createZygotes(join(project, 'r'));
// What waits for a zygote keeps no program from ending.
const alive = setInterval(() => {}, 60_000);
try {
  const captures = await withEngine(makeLarge(), measureCaptures);
  const protocol = await withEngine(demo, measureProtocol);
  const router = await measureRouter({ python, folder: project });
  const report = [
    row('a capture of 3 layers, beside a bare forward pass', captures.ours, captures.bare, 1.1),
    row('all positions of 3 layers, beside a bare forward pass', captures.all, captures.bare, 1.1),
    row(`the protocol, ${protocol.variants} runs, beside hooks one by one`, protocol.ours, protocol.oneByOne, 0.1),
    ...Object.entries(router).map(([tool, { routed, direct }]) =>
      row(`what ${tool} costs more in a lab elsewhere, beside 5 ms`, routed - direct, ROUTER, 1),
    ),
  ];
  print(report);
  mkdirSync(join(root, 'bench', 'results'), { recursive: true });
  const raw = { threads, captures, protocol, router };
  writeFileSync(join(root, 'bench', 'results', 'torch.json'), `${JSON.stringify({ report, raw }, null, 2)}\n`);
  process.exitCode = report.every(({ isMet }) => isMet) ? 0 : 1;
} finally {
  await zygotes.dismiss(true);
  rmSync(project, { recursive: true, force: true });
  clearInterval(alive);
}

async function withEngine(folder, work) {
  say(`opening ${folder}`);
  const places = { folder, runtime: join(project, 'r'), project };
  const engine = await createTorchEngine({ id: folder, python, zygotes, threads, dtype: 'float32', ...places });
  try {
    return await work(engine);
  } finally {
    await engine.close();
  }
}

/** 16 prompts of 64 tokens. Rounds of the two take turns, so that both meet the same weather. */
async function measureCaptures(engine) {
  say('measuring: captures, a model of GPT-2 size');
  const { layers } = engine.describe();
  const points = [0, Math.floor(layers / 2), layers - 1].map((layer) => ({ layer, place: 'resid_post' }));
  const tapping = (positions) => points.map((point) => ({ point, positions }));
  await run(engine, 'import time, torch\ntorch.set_grad_enabled(False)');
  const times = { ours: [], all: [], bare: [] };
  for (let round = 0; round <= ROUNDS; round++) {
    const prompts = Array.from({ length: 16 }, (_, i) =>
      Array.from({ length: 64 }, (_, j) => (round * 7919 + i * 997 + j * 131) % VOCABULARY),
    );
    // The body of the model alone: what a capture needs, without the head.
    const bare = `tokens = torch.tensor(${JSON.stringify(prompts)})
start = time.perf_counter()
model.base_model(tokens, use_cache=False)
time.perf_counter() - start`;
    times.bare.push(await run(engine, bare));
    times.ours.push(await timed(() => engine.run({ prompts, taps: tapping([-1]) })));
    times.all.push(await timed(() => engine.run({ prompts, taps: tapping({ from: 0 }) })));
  }
  // The least of them: whatever else the machine does only ever adds.
  return Object.fromEntries(Object.entries(times).map(([name, taken]) => [name, Math.min(...taken.slice(1))]));
}

/** The whole protocol on few pairs; and as many runs with a hook, one prompt and one direction at a time. */
async function measureProtocol(engine) {
  say('measuring: the protocol on the model that ships');
  const { seconds, variants, verdict, prompts } = await timeProtocol(engine, {
    layer: 1,
    pairs: PAIRS,
    neutral: NEUTRAL,
  });
  say(`measuring: ${variants} interventions one by one`);
  return { ours: seconds, oneByOne: await run(engine, oneByOne(prompts, variants)), variants, verdict };
}

/** As one would write it. */
function oneByOne(prompts, count) {
  return `import time, torch
torch.set_grad_enabled(False)
prompts = [torch.tensor([tokens]) for tokens in ${JSON.stringify(prompts)}]
directions = torch.randn(${count}, model.config.hidden_size)
def intervene(prompt, direction):
    def add(module, args, output):
        hidden = output[0] if isinstance(output, tuple) else output
        hidden[:, -1] += direction
        return output
    handle = model.model.layers[1].register_forward_hook(add)
    try:
        return model(prompt, use_cache=False, logits_to_keep=1).logits[0, -1]
    finally:
        handle.remove()
intervene(prompts[0], directions[0])
start = time.perf_counter()
for i, direction in enumerate(directions):
    intervene(prompts[i % len(prompts)], direction)
time.perf_counter() - start`;
}

async function run(engine, code) {
  const { outputs, ending } = await engine.execute(code);
  if (ending.status !== 'ok') throw new Error(`Code beside the model failed: ${JSON.stringify(outputs)}`);
  return Number(outputs.findLast(({ type }) => type === 'result')?.data['text/plain']);
}

async function timed(work) {
  const start = performance.now();
  await work();
  return (performance.now() - start) / 1000;
}

/** With random weights: how fast it is does not depend on what it knows. The shipped tokenizer stands in for its own. */
function makeLarge() {
  const folder = join(home, 'gpt2-size');
  if (existsSync(join(folder, 'tokenizer.json'))) return folder;
  say('preparing: a model of GPT-2 size with random weights');
  mkdirSync(folder, { recursive: true });
  const made = spawnSync(python, [join(root, 'bench', 'lab_torch.py'), 'make', folder], { stdio: 'inherit' });
  if (made.status !== 0)
    throw new Error(`${python} could not make a model. Name a Python with torch by CUVETTE_TORCH_PYTHON.`);
  spawnSync('cp', [join(demo, 'tokenizer.json'), folder]);
  return folder;
}

/** Measures the lab's embedded engine against PyTorch with transformers, in one run, on the same processors; prints a table, writes JSON. */

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, resolve } from 'node:path';
import { median, print, row, say } from './table.mjs';

const root = resolve(import.meta.dirname, '..');
const home = join(root, 'node_modules', '.cache', 'cuvette-bench', 'lab');
const demo = join(root, 'models', 'demo');
const threads = Math.min(8, availableParallelism());
const VOCABULARY = 50_257;
const ROUNDS = 5;

const python = findTorch();
if (!python) {
  process.stderr.write(
    'No Python here has torch and transformers, so there is nothing to compare with. Make one, and name it:\n' +
      '  python3 -m venv torch && torch/bin/pip install torch==2.13.0 transformers==5.22.2\n' +
      '  CUVETTE_TORCH_PYTHON=torch/bin/python npm run bench:lab\n',
  );
  process.exit(1);
}
const large = makeLarge();
const prompts = (count, length) =>
  Array.from({ length: count }, (_, row) => Array.from({ length }, (_, i) => (row * 997 + i * 131 + 7) % VOCABULARY));
const common = { threads, rounds: ROUNDS, vocabulary: VOCABULARY, decode: prompts(1, 16)[0], newTokens: 32 };

say('measuring: a model of GPT-2 size, a batch of 8 × 32 tokens and 32 tokens one by one');
const batch = compareEngines({ ...common, prefill: prompts(8, 32) });
say('measuring: the same, one prompt of 256 tokens');
const long = compareEngines({ ...common, prefill: prompts(1, 256) });
say('measuring: the protocol on the model that ships');
const protocol = measureProtocol();
say('measuring: a sweep over the same model, and as many single protocols');
const { sweep } = runEngine({ folder: demo, threads, rounds: 1, sweep: { pairs: 64 } });

const seconds = (value) => `${value.toPrecision(3)} s`;
const perSecond = (tokens) => (value) => `${Math.round(tokens / value)} tokens/s`;
const megabytes = (value) => `${Math.round(value / 1e6)} MB`;
const weights = batch.ours.parameters * 4;
/** Of every prompt and token of the batch's rounds, the one before them included. */
const activations = (ROUNDS + 1) * (8 * 32 + common.decode.length + common.newTokens) * batch.ours.tokenBytes;
const mostMemory = (1.3 * weights + activations) / (weights + activations);
const report = [
  row('8 prompts of 32 tokens at once', median(batch.ours.prefill), median(batch.theirs.prefill), 4, perSecond(256)),
  row('one prompt of 256 tokens', median(long.ours.prefill), median(long.theirs.prefill), 4, perSecond(256)),
  row('one token after the other', median(batch.ours.decode), median(batch.theirs.decode), 1.5, perSecond(32)),
  row('memory of the open model, beside its weights', batch.ours.loaded, weights, 1.3, megabytes),
  row(
    'the same at work, at its most, beside weights and activations',
    batch.ours.peak,
    weights + activations,
    mostMemory,
    megabytes,
  ),
  row(
    `the protocol, ${protocol.ours.variants} runs, beside the same runs with hooks`,
    protocol.ours.seconds,
    protocol.theirs,
    1,
    seconds,
  ),
  row(
    `a sweep over ${sweep.sites} sites, beside as many single protocols`,
    sweep.sweep,
    sweep.protocols,
    1 / 5,
    seconds,
  ),
];
print(report);
mkdirSync(join(root, 'bench', 'results'), { recursive: true });
writeFileSync(
  join(root, 'bench', 'results', 'lab.json'),
  `${JSON.stringify({ report, raw: { threads, batch, long, protocol, sweep } }, null, 2)}\n`,
);
process.exitCode = report.every(({ isMet }) => isMet) ? 0 : 1;

function findTorch() {
  const candidates = [process.env.CUVETTE_TORCH_PYTHON, 'python3'].filter(Boolean);
  return candidates.find((one) => spawnSync(one, ['-c', 'import torch, transformers']).status === 0);
}

/** With random weights: how fast it is does not depend on what it knows. The shipped tokenizer stands in for its own. */
function makeLarge() {
  const folder = join(home, 'gpt2-size');
  if (existsSync(join(folder, 'tokenizer.json'))) return folder;
  say('preparing: a model of GPT-2 size with random weights');
  mkdirSync(folder, { recursive: true });
  runPython('make', folder);
  spawnSync('cp', [join(demo, 'tokenizer.json'), folder]);
  return folder;
}

function compareEngines(wanted) {
  return { ours: runEngine({ ...wanted, folder: large }), theirs: JSON.parse(runPython('measure', large, wanted)) };
}

/** Beside PyTorch doing as many runs with a hook, all prompts of one length in a batch, for one random direction after the other. */
function measureProtocol() {
  const { protocol } = runEngine({ folder: demo, threads, rounds: 1, protocol: { layer: 1, pairs: 64 } });
  const { prompts, ...ours } = protocol;
  const lengths = [...new Set(prompts.map((prompt) => prompt.length))];
  const batches = lengths.map((length) => prompts.filter((prompt) => prompt.length === length));
  const directions = Math.ceil(ours.variants / prompts.length);
  const wanted = { threads, rounds: 1, interventions: { layer: 1, directions, batches } };
  return { ours, theirs: JSON.parse(runPython('measure', demo, wanted)).interventions[0] };
}

function runEngine(wanted) {
  return JSON.parse(runChild(process.execPath, [join(root, 'bench', 'lab-engine.mjs')], wanted));
}

function runPython(command, folder, wanted) {
  return runChild(python, [join(root, 'bench', 'lab_torch.py'), command, folder], wanted);
}

function runChild(command, args, wanted) {
  const { status, stdout } = spawnSync(command, args, {
    input: JSON.stringify(wanted ?? {}),
    encoding: 'utf8',
    maxBuffer: 1 << 28,
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, OMP_NUM_THREADS: String(threads) },
  });
  if (status !== 0) throw new Error(`${command} ${args[0]} ended with ${status}.`);
  return stdout;
}

/**
 * Measures the lab's embedded engine against PyTorch with transformers, on the same processors; prints a table, writes JSON. Both sides stay open and are
 * asked in turn, so that a busy moment of the machine meets both: what counts is the median of the ratios of neighbours.
 */

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { FIRST_VERDICT } from './first-edition.mjs';
import { openSide } from './side.mjs';
import { median, print, row, say } from './table.mjs';

const root = resolve(import.meta.dirname, '..');
const home = join(root, 'node_modules', '.cache', 'cuvette-bench', 'lab');
const demo = join(root, 'models', 'demo');
const threads = Math.min(8, availableParallelism());
const VOCABULARY = 50_257;
/** `npm run bench:lab -- 1` is a quick look. */
const ROUNDS = Number(process.argv[2] ?? 7);
/** Torch's idle threads spin for a while. */
const REST = 50;
/** At most how many times torch's seconds: two thirds of its speed. */
const PREFILL = 1.5;
/** The rows of the largest batch, as in `layers.ts`. */
const ROWS_AT_ONCE = 512;
/** At most how many times the bytes of weights and activations. */
const MEMORY = 1.3;

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
const decode = { do: 'decode', prompt: prompts(1, 16)[0], newTokens: 32 };

const engines = await openBoth(large);
const size = `${Math.round(engines.ours.description.parameters / 1e6)} million parameters`;
const measured = [];
for (const [count, length] of [
  [1, 32],
  [1, 256],
  [8, 32],
  [8, 128],
  [32, 32],
]) {
  await compare(
    `prefill of ${shape(count, length)}`,
    { do: 'prefill', prompts: prompts(count, length) },
    count * length,
    PREFILL,
  );
}
await compare(`a capture of ${shape(8, 32)} after every block`, { do: 'capture', prompts: prompts(8, 32) }, 256, 1);
await compare('32 tokens, one after the other', decode, 32, PREFILL);
await engines.close();
const memory = await measureMemory();
say('measuring: the protocol on the model that ships');
const protocol = await measureProtocol();
say('measuring: the engine in the protocol, and in its first edition');
const editions = await measureEditions();
say('measuring: a sweep over the same model, and as many single protocols');
const sweep = await measureSweep();

const report = [
  ...measured.map(({ what, ours, theirs, ratio, tokens, limit }) => ({
    ...row(
      `${what}, ${size}`,
      median(ours),
      median(theirs),
      limit,
      (value) => `${Math.round(tokens / value)} tokens/s`,
    ),
    ratio,
    isMet: ratio <= limit,
  })),
  row('memory of the open model, beside its weights', memory.loaded, memory.weights, MEMORY, megabytes),
  ...memory.peaks.map(({ what, peak, activations }) =>
    row(`${what}, beside weights and activations`, peak, memory.weights + activations, MEMORY, megabytes),
  ),
  {
    ...row(
      `the protocol, ${protocol.variants} runs, beside the same with hooks`,
      median(protocol.ours),
      median(protocol.theirs),
      1,
      seconds,
    ),
    ratio: protocol.ratio,
    isMet: protocol.ratio <= 1,
  },
  {
    ...row(
      `the engine in ${editions.variants} runs, beside the first edition's ${editions.firstVariants}`,
      median(editions.second),
      median(editions.first),
      1.5,
      seconds,
    ),
    ratio: editions.ratio,
    isMet: editions.ratio <= 1.5 && editions.verdict === FIRST_VERDICT,
  },
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
const raw = { threads, versions: engines.theirs.description, measured, memory, protocol, editions, sweep };
writeFileSync(join(root, 'bench', 'results', 'lab.json'), `${JSON.stringify({ report, raw }, null, 2)}\n`);
process.exitCode = report.every(({ isMet }) => isMet) ? 0 : 1;

function shape(count, length) {
  return `${count} ${count === 1 ? 'prompt' : 'prompts'} of ${length} tokens`;
}

function seconds(value) {
  return `${value.toPrecision(3)} s`;
}

function megabytes(value) {
  return `${Math.round(value / 1e6)} MB`;
}

async function compare(what, work, tokens, limit) {
  say(`measuring: ${what}`);
  const taken = await inTurn(engines, work, work, ROUNDS);
  say(`  ${taken.ratio.toFixed(2)} times the seconds of torch`);
  measured.push({ what, tokens, limit, ...taken });
}

/** The first round of each is not counted. Who begins changes. */
async function inTurn(sides, ourWork, theirWork, rounds) {
  const ours = [];
  const theirs = [];
  const takeOurs = async () => ours.push((await sides.ours.ask(ourWork)).seconds);
  const takeTheirs = async () => theirs.push((await sides.theirs.ask(theirWork)).seconds);
  for (let round = 0; round <= rounds; round++) {
    for (const take of round % 2 ? [takeOurs, takeTheirs] : [takeTheirs, takeOurs]) {
      await take();
      await pause(REST);
    }
  }
  ours.shift();
  theirs.shift();
  return { ours, theirs, ratio: median(ours.map((value, i) => value / theirs[i])) };
}

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
  const { status } = spawnSync(python, [join(root, 'bench', 'lab_torch.py'), 'make', folder], { stdio: 'inherit' });
  if (status !== 0) throw new Error(`${python} ended with ${status}.`);
  spawnSync('cp', [join(demo, 'tokenizer.json'), folder]);
  return folder;
}

function openOurs(folder) {
  const options = { folder, threads, vocabulary: VOCABULARY };
  return openSide(process.execPath, [join(root, 'bench', 'lab-engine.mjs')], options);
}

async function openBoth(folder) {
  const ours = await openOurs(folder);
  const env = { OMP_NUM_THREADS: String(threads) };
  const theirs = await openSide(python, [join(root, 'bench', 'lab_torch.py'), 'serve'], { env, folder, threads });
  return { ours, theirs, close: () => Promise.all([ours.close(), theirs.close()]) };
}

/**
 * In processes that do nothing else: batches and tokens one by one, and a protocol. Activations are the keys and values of all tokens, which are kept for
 * later runs, what a batch is computed in, and the largest answer.
 */
async function measureMemory() {
  say('measuring: memory of batches');
  const batched = await openOurs(large);
  const { parameters, tokenBytes, rowBytes, loaded } = batched.description;
  for (let round = 0; round <= ROUNDS; round++) {
    await batched.ask({ do: 'prefill', prompts: prompts(8, 32) });
    await batched.ask(decode);
  }
  const tokens = (ROUNDS + 1) * (8 * 32 + decode.prompt.length + decode.newTokens);
  const afterBatches = await batched.ask({ do: 'memory' });
  await batched.close();

  say('measuring: memory of a protocol');
  const asked = await openOurs(large);
  const protocol = await asked.ask({ do: 'protocol', layer: 6, pairs: 12 });
  const afterProtocol = await asked.ask({ do: 'memory' });
  await asked.close();
  const inBatches = tokens * tokenBytes + 8 * 32 * rowBytes;
  const inProtocol = protocol.tokens * tokenBytes + ROWS_AT_ONCE * rowBytes + protocol.largestAnswer;
  const peaks = [
    { what: 'its peak over batches', peak: afterBatches.peak, activations: inBatches },
    { what: 'its peak over a protocol', peak: afterProtocol.peak, activations: inProtocol },
  ];
  return { loaded, weights: parameters * 4, peaks };
}

async function measureSweep() {
  const side = await openOurs(demo);
  const measured = await side.ask({ do: 'sweep', pairs: 64 });
  await side.close();
  return measured;
}

/** The engine's seconds in the protocol, beside those of all that the first edition asked for the same question. The first round is not counted. */
async function measureEditions() {
  const side = await openOurs(demo);
  const rounds = [];
  for (let round = 0; round <= ROUNDS; round++) {
    rounds.push(await side.ask({ do: 'editions', layer: 1, pairs: 64 }));
    say(`  ${round} of ${ROUNDS} rounds`);
  }
  await side.close();
  const counted = rounds.slice(1);
  const ratio = median(counted.map(({ second, first }) => second / first));
  const { variants, firstVariants, verdict } = rounds[0];
  const [second, first] = [counted.map((one) => one.second), counted.map((one) => one.first)];
  return { second, first, ratio, variants, firstVariants, verdict };
}

/** Beside PyTorch doing as many runs with a hook, all prompts of one length in a batch, for one random direction after the other. */
async function measureProtocol() {
  const sides = await openBoth(demo);
  const work = { do: 'protocol', layer: 1, pairs: 64 };
  const { prompts: asked, variants } = await sides.ours.ask(work);
  const lengths = [...new Set(asked.map((prompt) => prompt.length))];
  const batches = lengths.map((length) => asked.filter((prompt) => prompt.length === length));
  const directions = Math.ceil(variants / asked.length);
  const theirs = { do: 'interventions', layer: 1, directions, batches };
  const taken = await inTurn(sides, work, theirs, 3);
  await sides.close();
  return { variants, ...taken };
}

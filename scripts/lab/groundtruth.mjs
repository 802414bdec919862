#!/usr/bin/env node
/**
 * Asks the causality protocol about models whose answers are known, and prints how often it is right: node scripts/lab/groundtruth.mjs
 * Needs the built program (npm run build). Seeds 1 to 10 were used while thresholds and models were made; those here begin beyond.
 */

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import {
  askEngine,
  askQuestion,
  CLOSE,
  createEmbeddedEngine,
  createLabs,
  createTorchEngine,
  createZygotes,
  disagreements,
  HASH,
  openModelFolder,
  runGroundTruth,
} from '../../build/lab.js';
import { serveLab } from './serve-lab.mjs';

const HELP = `Usage: node scripts/lab/groundtruth.mjs [options]

  --first N   the first seed (2001)
  --seeds N   seeds of every case (10)
  --noise N   seeds of the case without signal, for the rate of false positives (100)
  --engine E  embedded (the default), or torch: each model is asked in both, and what they agree on is counted; in the
              Python that CUVETTE_TORCH_PYTHON names, or python3
  --served    torch in a lab of its own (cuvette lab serve) for every model, asked over HTTP with an agent's tools
  --verbose   a line for every run
  --help      shows this

Ends with 1 if less than 95 % of the verdicts are right, if more than 5 % of the runs on noise find something, or if a
random-weights twin is called causal; with torch, also if the engines differ about a verdict, its reason, or any number
of the evidence by more than 1e-4 (beyond 10, 1e-5 of itself).
`;

const { values: options } = parseArgs({
  options: {
    first: { type: 'string', default: '2001' },
    seeds: { type: 'string', default: '10' },
    noise: { type: 'string', default: '100' },
    engine: { type: 'string', default: 'embedded' },
    served: { type: 'boolean', default: false },
    verbose: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
if (options.help) {
  process.stdout.write(HELP);
  process.exit(0);
}

if (!['embedded', 'torch'].includes(options.engine)) {
  process.stderr.write(`There is no engine ${options.engine}. There are: embedded, torch.\n`);
  process.exit(2);
}

if (options.served && options.engine !== 'torch') {
  process.stderr.write('--served is for --engine torch.\n');
  process.exit(2);
}

const python = process.env.CUVETTE_TORCH_PYTHON ?? 'python3';
const root = fileURLToPath(new URL('../..', import.meta.url));
const { version } = JSON.parse(readFileSync(`${root}/package.json`, 'utf8'));
const shipped = `${root}/models/demo`;
const first = Number(options.first);
const seedsFrom = (start, count) => Array.from({ length: Math.max(0, count) }, (_, i) => start + i);
const seeds = Number(options.seeds);
const asked = {
  seeds: seedsFrom(first, seeds),
  noiseSeeds: seedsFrom(first + seeds, Number(options.noise) - seeds),
  ...(existsSync(`${shipped}/model.safetensors`) && { twinOf: shipped }),
};
const signal = new AbortController().signal;
const started = performance.now();
const embedded = await ask(
  askEngine(async (folder) => createEmbeddedEngine({ model: await openModelFolder(folder), id: 'toy' }), {
    version,
    signal,
  }),
);
const torch = options.engine === 'torch' ? await (options.served ? ask(askServed) : withTorch(ask)) : undefined;
const { result } = torch ?? embedded;

const verdicts = ['causal', 'weak-causal', 'epiphenomenal-softmax', 'epiphenomenal-template', 'undetermined'];
row(['', ...verdicts]);
for (const [name, counts] of result.confusion) row([name, ...verdicts.map((verdict) => counts.get(verdict) ?? '·')]);

const { count, of, interval } = result.falsePositives;
const twins = result.confusion.get('twin')?.get('causal') ?? 0;
console.log(`
${result.correct} of ${result.runs} verdicts are right (${percent(result.correct / result.runs)}), ${result.rightReasons} for the right reason.
On noise, ${count} of ${of} runs found something: ${percent(count / of)}, 95 % interval ${percent(interval.low)} to ${percent(interval.high)}.
${result.confusion.has('twin') ? `The random-weights twin of the shipped model was called causal ${twins} times.` : 'The shipped model is not there, and its random-weights twin was not asked.'}
It took ${Math.round((performance.now() - started) / 1000)} seconds.`);
const isSame = !torch || isAgreed(torch.runs, embedded.runs);
const isRight = result.correct >= 0.95 * result.runs && count <= 0.05 * of && twins === 0;
process.exitCode = isRight && isSame ? 0 : 1;

/** With every run, in order. */
async function ask(answer) {
  const runs = [];
  const onRun = (run) => {
    runs.push(run);
    if (options.verbose) report(run);
  };
  return { result: await runGroundTruth({ ...asked, answer, onRun }), runs };
}

/** Torch is imported once, and every model is opened in a copy of that Python. */
async function withTorch(work) {
  const project = mkdtempSync(join(tmpdir(), 'cv-'));
  const runtime = join(project, 'r');
  const zygotes = createZygotes(runtime);
  const preload = ['torch', 'transformers.models.llama.modeling_llama'];
  // What waits for a zygote keeps no program from ending.
  const alive = setInterval(() => {}, 60_000);
  try {
    const engineFor = (folder) =>
      createTorchEngine({ id: 'toy', folder, python, zygotes, preload, runtime, project, dtype: 'float32' });
    return await work(askEngine(engineFor, { version, signal }));
  } finally {
    await zygotes.dismiss(true);
    rmSync(project, { recursive: true, force: true });
    clearInterval(alive);
  }
}

/** As an agent asks it, with tools. */
async function askServed(model, question) {
  const folder = mkdtempSync(join(tmpdir(), 'cv-'));
  const labs = createLabs({ data: join(folder, 'agent'), cache: join(folder, 'cache'), project: folder });
  let server;
  try {
    server = await serveLab({ model, home: join(folder, 'home'), python, cwd: folder });
    const context = { signal, progress: () => {} };
    await labs.attach('served', server.url, server.token, context);
    const call = async (tool, args) => (await labs.call('served', tool, args, context)).answer;
    return (await askQuestion(call, question)).record;
  } finally {
    await labs.close();
    await server?.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Whether the engines agree on every verdict and reason, and on every number as far as float32 carries. */
function isAgreed(runs, others) {
  const pairs = runs.map((run, i) => [run, others[i]]);
  const differing = (what, byDigits) =>
    pairs.filter(([run, other]) => {
      const paths = disagreements(what(run), what(other), { ignored: [HASH], byDigits });
      if (paths.length > 0) console.log(`${run.case} ${run.seed}: ${paths.length} differ, as ${paths[0]}`);
      return paths.length > 0;
    });
  const agreeing = (those) => `${runs.length - those.length} of ${runs.length}`;
  const verdicts = differing(({ verdict, reason }) => ({ verdict, reason }), false);
  const numbers = differing(withoutEngine, true);
  const absolutely = differing(withoutEngine, false);
  console.log(
    `Torch${options.served ? ', over HTTP,' : ''} and the embedded engine agree on verdict and reason in ${agreeing(verdicts)} runs, ` +
      `and on every number of the evidence, each draw of a null distribution included, within ${CLOSE} (beyond 10, ${CLOSE / 10} of itself) in ${agreeing(numbers)}; ` +
      `within ${CLOSE} however large it is, in ${agreeing(absolutely)}.`,
  );
  return verdicts.length === 0 && numbers.length === 0;
}

/** Nor what only a tool adds: where a direction came from. */
function withoutEngine({ evidence, ...run }) {
  const { source: _, ...direction } = evidence.direction;
  return { ...run, evidence: { ...evidence, direction, model: undefined } };
}

function row(cells) {
  const widths = [12, ...verdicts.map((verdict) => verdict.length + 2)];
  console.log(
    cells.map((cell, i) => (i === 0 ? String(cell).padEnd(widths[i]) : String(cell).padStart(widths[i]))).join(''),
  );
}

function report(run) {
  const outcome = run.correct ? (run.rightReason ? '' : '  (another reason)') : '  WRONG';
  console.log(`${run.case} ${run.seed}: ${run.verdict}, ${run.reason}${outcome}`);
}

function percent(share) {
  return `${Number((100 * share).toPrecision(3))} %`;
}

#!/usr/bin/env node
/**
 * Asks the causality protocol about models whose answers are known, and prints how often it is right: node scripts/lab/groundtruth.mjs
 * Needs the built program (npm run build). Seeds 1 to 10 were used while thresholds and models were made; those here begin beyond.
 */

import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { createEmbeddedEngine, openModelFolder, runGroundTruth } from '../../dist/lab.js';

const HELP = `Usage: node scripts/lab/groundtruth.mjs [options]

  --first N   the first seed (2001)
  --seeds N   seeds of every case (10)
  --noise N   seeds of the case without signal, for the rate of false positives (100)
  --verbose   a line for every run
  --help      shows this

Ends with 1 if less than 95 % of the verdicts are right, if more than 5 % of the runs on noise find something, or if a
random-weights twin is called causal.
`;

const { values: options } = parseArgs({
  options: {
    first: { type: 'string', default: '2001' },
    seeds: { type: 'string', default: '10' },
    noise: { type: 'string', default: '100' },
    verbose: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
if (options.help) {
  process.stdout.write(HELP);
  process.exit(0);
}

const root = fileURLToPath(new URL('../..', import.meta.url));
const { version } = JSON.parse(readFileSync(`${root}/package.json`, 'utf8'));
const shipped = `${root}/models/demo`;
const first = Number(options.first);
const seedsFrom = (start, count) => Array.from({ length: Math.max(0, count) }, (_, i) => start + i);
const seeds = Number(options.seeds);
const started = performance.now();
const result = await runGroundTruth({
  seeds: seedsFrom(first, seeds),
  noiseSeeds: seedsFrom(first + seeds, Number(options.noise) - seeds),
  ...(existsSync(`${shipped}/model.safetensors`) && { twinOf: shipped }),
  engineFor: async (folder) => createEmbeddedEngine({ model: await openModelFolder(folder), id: 'toy' }),
  version,
  signal: new AbortController().signal,
  onRun: options.verbose ? report : undefined,
});

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
process.exitCode = result.correct >= 0.95 * result.runs && count <= 0.05 * of && twins === 0 ? 0 : 1;

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

#!/usr/bin/env node
/**
 * Asks the causality protocol about models whose answers are known, and prints how often it is right: node scripts/lab/groundtruth.mjs
 * Needs the built program (npm run build). Seeds 1 to 10 were used while thresholds and models were made; those here begin beyond.
 */

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { asFamily, FAMILIES, familyOf, runFamilies, tally } from '../../build/lab.js';
import { reportAgreement } from './groundtruth/agreement.mjs';
import { askEmbedded, askServed, withTorch } from './groundtruth/engines.mjs';
import { measureFalsePositives, measureGain, measureLayers, measurePower } from './groundtruth/parts.mjs';
import { keyNumbers, printRun, printTally } from './groundtruth/print.mjs';

const PARTS = ['families', 'false-positives', 'power', 'gain', 'layers'];
const HELP = `Usage: node scripts/lab/groundtruth.mjs [options]

  --first N       the first seed (2001)
  --seeds N       seeds of every family (5)
  --families A,B  these families only, and no other part unless --parts names it
  --parts A,B     of ${PARTS.join(', ')}; all by default
  --held-out SET  families that somebody else has made, in test/lab/held-out: first, second or third; and no other part
  --noise N       runs on noise, shuffled labels and random-weights twins together, for the rate of false positives (150)
  --engine E      embedded (the default), or torch: each family is asked in both, and what they agree on is counted; in
                  the Python that CUVETTE_TORCH_PYTHON names, or python3
  --served        torch in a lab of its own (cuvette lab serve) for every model, asked over HTTP with an agent's tools
  --out FILE      where the results go as JSON (build/groundtruth.json)
  --quiet         no line for every run
  --help          shows this

Ends with 1 if less than 95 % of the verdicts are right, if more than 1 % of the runs without anything to find find
something or the upper end of that rate's interval is 3 % or more, if a verdict changes with the gain, or if the layers
of the shipped model contradict each other; with torch, also if the engines differ about a verdict, its reason, or any
number of the evidence by more than 1e-4 (beyond 10, 1e-5 of itself).
`;

const { values: options } = parseArgs({
  options: {
    first: { type: 'string', default: '2001' },
    seeds: { type: 'string', default: '5' },
    families: { type: 'string' },
    parts: { type: 'string' },
    'held-out': { type: 'string' },
    noise: { type: 'string', default: '150' },
    engine: { type: 'string', default: 'embedded' },
    served: { type: 'boolean', default: false },
    out: { type: 'string' },
    quiet: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
if (options.help) {
  process.stdout.write(HELP);
  process.exit(0);
}

const root = fileURLToPath(new URL('../..', import.meta.url));
const python = process.env.CUVETTE_TORCH_PYTHON ?? 'python3';
const { version } = JSON.parse(readFileSync(`${root}/package.json`, 'utf8'));
const shipped = `${root}/models/demo`;
const first = Number(options.first);
const seeds = Array.from({ length: Number(options.seeds) }, (_, i) => first + i);
const parts = chosenParts();
const families = await chosenFamilies();
const embedded = askEmbedded(version);
const started = performance.now();
const results = { version, seeds };
const failures = [];
const say = (run) => {
  if (!options.quiet) printRun(run);
};

if (parts.includes('families')) {
  const runs = await runFamilies(families, seeds, embedded, say);
  const counts = tally(runs);
  printTally(`${families.length} families × ${seeds.length} seeds`, counts);
  if (counts.right < 0.95 * counts.runs) failures.push('less than 95 % of the verdicts are right');
  results.families = runs.map(summaryOf);
  if (options.engine === 'torch' && !(await agrees(runs))) failures.push('the engines differ');
}
if (parts.includes('false-positives')) {
  const { rates, runs } = await measureFalsePositives(Number(options.noise), first, shipped, embedded, say);
  const { count, of, interval } = rates.all;
  if (count > 0.01 * of || interval.high >= 0.03) failures.push('too many false positives');
  results.falsePositives = { rates, runs: runs.map(summaryOf) };
}
if (parts.includes('power')) results.power = await measurePower(seeds, embedded, say);
if (parts.includes('gain')) {
  results.gain = await measureGain(seeds, embedded, say);
  if (results.gain.changing > 0) failures.push('verdicts change with the gain');
}
if (parts.includes('layers')) {
  results.layers = await measureLayers(shipped, version, seeds);
  if (results.layers.some(({ contradictions }) => contradictions.length > 0))
    failures.push('layers contradict each other');
}

const out = options.out ?? `${root}/build/groundtruth.json`;
mkdirSync(dirname(out), { recursive: true });
writeFileSync(out, `${JSON.stringify(results, null, 1)}\n`);
console.log(`\nIt took ${Math.round((performance.now() - started) / 1000)} seconds. ${out} has the results.`);
if (failures.length > 0) console.log(`Failed: ${failures.join('; ')}.`);
process.exitCode = failures.length > 0 ? 1 : 0;

function chosenParts() {
  if (!['embedded', 'torch'].includes(options.engine)) {
    refuse(`There is no engine ${options.engine}. There are: embedded, torch.`);
  }
  if (options.served && options.engine !== 'torch') refuse('--served is for --engine torch.');
  const isNarrow = options.families !== undefined || options['held-out'] !== undefined || options.engine === 'torch';
  const chosen = options.parts?.split(',') ?? (isNarrow ? ['families'] : PARTS);
  const unknown = chosen.find((part) => !PARTS.includes(part));
  if (unknown !== undefined) refuse(`There is no part ${unknown}. There are: ${PARTS.join(', ')}.`);
  return chosen;
}

async function chosenFamilies() {
  const all = options['held-out'] ? await heldOut() : FAMILIES;
  if (options.families === undefined) return all;
  const names = options.families.split(',');
  return names.map(
    (name) =>
      (options['held-out'] ? all.find((one) => one.name === name) : familyOf(name)) ??
      refuse(`There is no family ${name}.`),
  );
}

async function heldOut() {
  const built = new URL('../../build/held-out.js', import.meta.url);
  if (!existsSync(built))
    refuse('There is no build/held-out.js: test/lab/held-out/index.ts is missing, or npm run build is older.');
  const { heldOutSets } = await import(built);
  const set = heldOutSets[options['held-out']];
  if (!set) refuse(`There is no set ${options['held-out']}. There are: ${Object.keys(heldOutSets).join(', ')}.`);
  return set.map(asFamily);
}

async function agrees(runs) {
  const others = options.served
    ? await runFamilies(families, seeds, askServed(python), say)
    : await withTorch(python, version, (answer) => runFamilies(families, seeds, answer, say));
  return reportAgreement(others, runs);
}

/** Without the draws of null distributions, which are most of the evidence. */
function summaryOf({ evidence, ...run }) {
  return { ...run, numbers: keyNumbers(evidence) };
}

function refuse(message) {
  process.stderr.write(`${message}\n`);
  process.exit(2);
}

#!/usr/bin/env node
/**
 * Writes what the shipped model is trained and tested on into a folder: node scripts/lab/write-corpus.mjs <folder> [documents]
 * train.txt and held-out.txt have a text a line; vocabulary.json is for the tokenizer; datasets.json is what the tests ask of it.
 * scripts/lab/train-demo.py calls it.
 */

import { createWriteStream, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'tsdown';

const SEED = 20261116;
const HELD_OUT = 2_000;
/** Pairs of each dataset. */
const EVALUATED = 500;

const [folder, documents = '200000'] = process.argv.slice(2);
if (folder === undefined) throw new Error('Say where to: node scripts/lab/write-corpus.mjs <folder> [documents]');

const { vocabulary, writeDocuments, datasets } = await loadSources();
const text = writeDocuments(SEED);
const heldOut = take(text, HELD_OUT);
writeFileSync(join(folder, 'held-out.txt'), `${heldOut.join('\n')}\n`);
// What is held out is not among the training texts, though short texts can be written twice.
const seen = new Set(heldOut);
await pipeline(lines(text, Number(documents)), createWriteStream(join(folder, 'train.txt')));
writeFileSync(join(folder, 'vocabulary.json'), JSON.stringify(vocabulary()));
writeFileSync(join(folder, 'datasets.json'), JSON.stringify(datasets));

function take(generator, count) {
  return Array.from({ length: count }, () => generator.next().value);
}

function* lines(generator, count) {
  for (let written = 0; written < count; ) {
    const document = generator.next().value;
    if (seen.has(document)) continue;
    yield `${document}\n`;
    written++;
  }
}

/** The sources are TypeScript: bundled into a file that goes away again. */
async function loadSources() {
  const root = fileURLToPath(new URL('../..', import.meta.url));
  const place = mkdtempSync(join(tmpdir(), 'cuvette-corpus-'));
  try {
    const parts = ['vocabulary', 'text', 'datasets'];
    const entry = Object.fromEntries(parts.map((part) => [part, join(root, 'src', 'lab', 'demo', `${part}.ts`)]));
    await build({
      config: false,
      cwd: root,
      entry,
      outDir: place,
      format: 'esm',
      fixedExtension: true,
      dts: false,
      logLevel: 'error',
    });
    const [words, text, sets] = await Promise.all(
      parts.map((part) => import(pathToFileURL(join(place, `${part}.mjs`)).href)),
    );
    const datasets = {
      agreement: sets.agreementPairs(SEED, EVALUATED),
      attracted: sets.attractedPairs(SEED, EVALUATED),
      invented: sets.inventedPairs(SEED, EVALUATED),
      flags: sets.flagPairs(SEED, EVALUATED),
      reviews: sets.reviewPairs(SEED, EVALUATED),
    };
    return { ...words, ...text, datasets };
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}

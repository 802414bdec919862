/** The parts of the ground-truth suite beyond the families themselves: false positives, power, the gain curve, and the layers of a trained model. */

import {
  agreementPairs,
  decide,
  EFFECT_SIZES,
  falsePositives,
  familyOf,
  fittedOnInterchange,
  neutralPrompts,
  PAIR_COUNTS,
  powerFamily,
  runFamilies,
  runProtocol,
  tellLayerStory,
  twinFamilies,
  VOLUMES,
  volumeFamilies,
} from '../../../build/lab.js';
import { openEmbedded } from './engines.mjs';
import { percent, printRate } from './print.mjs';

/** Where there is nothing to find, as many runs of each kind. */
export async function measureFalsePositives(count, first, shipped, answer, say) {
  const noise = familyOf('noise');
  const families = [noise, fittedOnInterchange(noise, 2), familyOf('shuffled labels'), ...twinFamilies(shipped)];
  const seeds = Array.from({ length: Math.ceil(count / families.length) }, (_, i) => first + i);
  const runs = await runFamilies(families, seeds, answer, say);
  console.log('\nCalled causal or weak-causal where there is nothing to find:');
  const rates = {};
  for (const { name } of families) {
    rates[name] = falsePositives(runs.filter((run) => run.family === name));
    printRate(name, rates[name]);
  }
  rates.all = falsePositives(runs);
  printRate('all', rates.all);
  return { rates, runs };
}

/** How often each size of effect is called weak-causal, and the smallest that is found four times in five. */
export async function measurePower(seeds, answer, say) {
  const rows = [];
  for (const pairs of PAIR_COUNTS) {
    for (const share of EFFECT_SIZES) {
      const runs = await runFamilies([powerFamily(pairs, share)], seeds, answer, say);
      rows.push({ pairs, share, found: runs.filter((run) => run.verdict === 'weak-causal').length, of: runs.length });
    }
  }
  console.log('\nPower: how often a share of the effect is found (columns: shares)');
  console.log(
    ['  pairs', ...EFFECT_SIZES.map((share) => String(share).padStart(8)), '  smallest found in 4 of 5'].join(''),
  );
  for (const pairs of PAIR_COUNTS) {
    const its = rows.filter((row) => row.pairs === pairs);
    const smallest = its.find((row) => row.found >= 0.8 * row.of)?.share ?? 'none';
    console.log(
      [`  ${String(pairs).padEnd(5)}`, ...its.map((row) => `${row.found}/${row.of}`.padStart(8)), `  ${smallest}`].join(
        '',
      ),
    );
  }
  return rows;
}

/** The same mechanism at many volumes must have the same verdict. */
export async function measureGain(seeds, answer, say) {
  const rows = [];
  for (const volume of VOLUMES) {
    for (const run of await runFamilies(volumeFamilies(volume), seeds, answer, say)) {
      rows.push({ volume, mechanism: run.family, seed: run.seed, verdict: run.verdict, reason: run.reason });
    }
  }
  console.log(`\nGain, ${VOLUMES.join(', ')} times: verdicts of each mechanism and seed`);
  const lines = new Map();
  for (const row of rows) {
    const name = `${row.mechanism} ${row.seed}`;
    lines.set(name, [...(lines.get(name) ?? []), row]);
  }
  const changing = [...lines].filter(([, its]) => new Set(its.map((row) => row.verdict)).size > 1);
  for (const [name, its] of lines) console.log(`  ${name.padEnd(20)}${its.map((row) => row.verdict).join(', ')}`);
  console.log(`  ${lines.size - changing.length} of ${lines.size} have one verdict throughout.`);
  return { rows, changing: changing.length };
}

/** Of the model that ships: the number of the subject, after each block. */
export async function measureLayers(shipped, version, seeds) {
  const engine = await openEmbedded(shipped);
  const stories = [];
  try {
    for (const seed of seeds) {
      const question = {
        site: { layer: 0, place: 'resid_post', position: -1 },
        direction: { kind: 'fit', method: 'difference-of-means' },
        dataset: agreementPairs(seed, 32),
        target: { positive: [' are'], negative: [' is'] },
        neutralPrompts: neutralPrompts(seed, 24),
        seed,
      };
      const context = { version, signal: new AbortController().signal };
      const ask = async (asked, family) => decide(await runProtocol(engine, asked, { ...context, family }));
      stories.push({ seed, ...(await tellLayerStory(question, engine.describe().layers, ask)) });
    }
  } finally {
    await engine.close();
  }
  console.log('\nThe shipped model, is the subject one or many, by layer:');
  for (const { seed, upward, contradictions } of stories) {
    console.log(`  ${seed}: ${upward.join(' → ')}`);
    for (const contradiction of contradictions) console.log(`    ${contradiction}`);
  }
  const plain = stories.filter(({ contradictions }) => contradictions.length === 0).length;
  console.log(`  ${plain} of ${stories.length} (${percent(plain / stories.length)}) without a contradiction.`);
  return stories;
}

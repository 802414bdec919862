/** Times the whole protocol in an engine, and counts how many runs of the model that were. */

import { agreementPairs, decide, neutralPrompts, runProtocol, runSweep } from '../build/lab.js';
import { timeFirstEdition } from './first-edition.mjs';

const context = () => ({ signal: new AbortController().signal, family: 1, version: 'bench' });
const direction = { kind: 'fit', method: 'difference-of-means' };

export async function timeProtocol(engine, { layer, pairs, neutral }) {
  const question = questionAt({ layer, place: 'resid_post', position: -1 }, pairs, neutral);
  const watched = watch(engine);
  let evidence;
  const seconds = await timed(async () => {
    evidence = await runProtocol(watched.engine, question, context());
  });
  const prompts = await engine.tokenize(question.dataset.map(({ prompt }) => prompt));
  return { seconds, ...watched.seen, verdict: decide(evidence).verdict, prompts };
}

/** The engine's part of the protocol, and of what the protocol's first edition asked for the same question. */
export async function timeEditions(engine, { layer, pairs, neutral }) {
  const { inEngine, variants, verdict } = await timeProtocol(engine, { layer, pairs, neutral });
  const first = await timeFirstEdition(engine, {
    layer,
    dataset: agreementPairs(1, pairs).map(({ prompt }) => prompt),
    neutral: neutralPrompts(1, neutral),
  });
  return { second: inEngine, first: first.seconds, variants, firstVariants: first.variants, verdict };
}

const POSITIONS = [-5, -4, -3, -2, -1];

/** Times a sweep over all layers and five positions, and the protocol at each of the same sites. */
export async function timeSweep(engine, { pairs, neutral }, progress) {
  const { layers } = engine.describe();
  const sites = Array.from({ length: layers }, (_, layer) =>
    POSITIONS.map((position) => ({ layer, place: 'resid_post', position })),
  ).flat();
  const question = { sites, directions: [{ name: 'fit', direction }], dataset: agreementPairs(1, pairs), seed: 1 };
  const sweep = await timed(() => runSweep(engine, question, context()));
  let protocols = 0;
  for (const [index, site] of sites.entries()) {
    protocols += await timed(() => runProtocol(engine, questionAt(site, pairs, neutral), context()));
    progress(`${index + 1} of ${sites.length} protocols`);
  }
  return { sites: sites.length, sweep, protocols };
}

function questionAt(site, pairs, neutral) {
  const dataset = agreementPairs(1, pairs);
  return { site, direction, dataset, neutralPrompts: neutralPrompts(1, neutral), seed: 1 };
}

/** Counts what an engine is asked for: runs, seconds in which it has something to do, tokens of different prompts, and the bytes of the largest answer. */
function watch(engine) {
  const seen = { variants: 0, inEngine: 0, tokens: 0, largestAnswer: 0 };
  const prompts = new Set();
  let asked = 0;
  let begun = 0;
  const run = async (request, signal) => {
    seen.variants += request.variants?.length ?? request.prompts.length;
    for (const prompt of request.prompts) {
      if (!prompts.has(String(prompt))) seen.tokens += prompt.length;
      prompts.add(String(prompt));
    }
    if (asked++ === 0) begun = performance.now();
    try {
      const answer = await engine.run(request, signal);
      seen.largestAnswer = Math.max(seen.largestAnswer, bytesOf(answer));
      return answer;
    } finally {
      if (--asked === 0) seen.inEngine += (performance.now() - begun) / 1000;
    }
  };
  return { engine: { ...engine, run }, seen };
}

function bytesOf(results) {
  let bytes = 0;
  for (const { activations, logits } of results) {
    for (const { byteLength } of activations) bytes += byteLength;
    bytes += logits?.byteLength ?? 0;
  }
  return bytes;
}

async function timed(work) {
  const start = performance.now();
  await work();
  return (performance.now() - start) / 1000;
}

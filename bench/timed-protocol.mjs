/** Times the whole protocol in an engine, and counts how many runs of the model that were. */

import { agreementPairs, decide, neutralPrompts, runProtocol, runSweep } from '../build/lab.js';

export async function timeProtocol(engine, { layer, pairs, neutral }) {
  const question = {
    site: { layer, place: 'resid_post', position: -1 },
    direction: { kind: 'fit', method: 'difference-of-means' },
    dataset: agreementPairs(1, pairs),
    neutralPrompts: neutralPrompts(1, neutral),
    seed: 1,
  };
  let variants = 0;
  const counting = {
    ...engine,
    run(request, signal) {
      variants += request.variants?.length ?? request.prompts.length;
      return engine.run(request, signal);
    },
  };
  const start = performance.now();
  const evidence = await runProtocol(counting, question, {
    signal: new AbortController().signal,
    family: 1,
    version: 'bench',
  });
  const seconds = (performance.now() - start) / 1000;
  const prompts = await engine.tokenize(question.dataset.map(({ prompt }) => prompt));
  return { seconds, variants, verdict: decide(evidence).verdict, prompts };
}

const POSITIONS = [-5, -4, -3, -2, -1];

/** Times a sweep over all layers and five positions, and the protocol at each of the same sites. */
export async function timeSweep(engine, { pairs, neutral }) {
  const { layers } = engine.describe();
  const sites = Array.from({ length: layers }, (_, layer) =>
    POSITIONS.map((position) => ({ layer, place: 'resid_post', position })),
  ).flat();
  const direction = { kind: 'fit', method: 'difference-of-means' };
  const dataset = agreementPairs(1, pairs);
  const context = { signal: new AbortController().signal, family: 1, version: 'bench' };
  const seconds = async (work) => {
    const start = performance.now();
    await work();
    return (performance.now() - start) / 1000;
  };
  const sweep = await seconds(() =>
    runSweep(engine, { sites, directions: [{ name: 'fit', direction }], dataset, seed: 1 }, context),
  );
  let protocols = 0;
  for (const site of sites) {
    const question = { site, direction, dataset, neutralPrompts: neutralPrompts(1, neutral), seed: 1 };
    protocols += await seconds(() => runProtocol(engine, question, context));
  }
  return { sites: sites.length, sweep, protocols };
}

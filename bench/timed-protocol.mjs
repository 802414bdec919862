/** Times the whole protocol in an engine, and counts how many runs of the model that were. */

import { agreementPairs, decide, neutralPrompts, runProtocol } from '../build/lab.js';

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

/** The embedded engine at work, in a process of its own so that its memory can be told: what is asked for is said in JSON on standard input. */

import { readFileSync } from 'node:fs';
import {
  agreementPairs,
  createEmbeddedEngine,
  decide,
  neutralPrompts,
  openModelFolder,
  runProtocol,
} from '../dist/lab.js';

const wanted = JSON.parse(readFileSync(0, 'utf8'));
const before = process.memoryUsage().rss;
const model = await openModelFolder(wanted.folder);
const engine = await createEmbeddedEngine({ model, id: wanted.folder, threads: wanted.threads });
const { layers, width } = engine.describe();
/** Keys and values of one token, in every block: the engine keeps them for later runs. */
const tokenBytes = layers * 2 * width * 4;
const answer = { parameters: model.parameters, tokenBytes, loaded: process.memoryUsage().rss - before };
if (wanted.prefill) {
  answer.prefill = await times((round) =>
    engine.run({ prompts: varied(wanted.prefill, round), logits: { positions: [-1] } }),
  );
  answer.decode = await times(() => engine.generate({ prompts: [wanted.decode], maxNewTokens: wanted.newTokens }));
}
if (wanted.protocol) Object.assign(answer, await protocol());
answer.peak = process.resourceUsage().maxRSS * 1024 - before;
await engine.close();
model.close();
process.stdout.write(JSON.stringify(answer));

async function times(work) {
  await work(0);
  const taken = [];
  for (let round = 1; round <= wanted.rounds; round++) {
    const start = performance.now();
    await work(round);
    taken.push((performance.now() - start) / 1000);
  }
  return taken;
}

/** Other prompts each time: what the engine remembers of earlier ones is of no use. */
function varied(prompts, round) {
  return prompts.map((prompt) => prompt.map((token) => (token * 31 + round * 7919) % wanted.vocabulary));
}

/** The whole protocol, as the demo asks it; and how many runs of the model that were. */
async function protocol() {
  const question = {
    site: { layer: wanted.protocol.layer, place: 'resid_post', position: -1 },
    direction: { kind: 'fit', method: 'difference-of-means' },
    dataset: agreementPairs(1, wanted.protocol.pairs),
    neutralPrompts: neutralPrompts(1, 32),
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
  return { protocol: { seconds, variants, verdict: decide(evidence).verdict, prompts } };
}

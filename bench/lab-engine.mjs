/** The embedded engine at work, in a process of its own so that its memory can be told: a line of JSON says what to open, each further line what to do. */

import { createInterface } from 'node:readline';
import { createEmbeddedEngine, openModelFolder } from '../build/lab.js';
import { say } from './table.mjs';
import { timeEditions, timeProtocol, timeSweep } from './timed-protocol.mjs';

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const opened = JSON.parse((await lines.next()).value);
const before = process.memoryUsage().rss;
const model = await openModelFolder(opened.folder);
const engine = await createEmbeddedEngine({ model, id: opened.folder, threads: opened.threads });
const { layers, width } = engine.describe();
let round = 0;

const works = {
  prefill: ({ prompts }) => engine.run({ prompts: varied(prompts), logits: { positions: [-1] } }),
  capture: ({ prompts }) => engine.run({ prompts: varied(prompts), taps: allLayers() }),
  decode: ({ prompt, newTokens }) => engine.generate({ prompts: [prompt], maxNewTokens: newTokens }),
};

// Keys and values of one token, in every block: the engine keeps them for later runs.
tell({
  parameters: model.parameters,
  tokenBytes: layers * 2 * width * 4,
  // One row of a batch, in a model such as GPT-2: the residual stream, three numbers for each of its own as queries, keys and values, four in the MLP, and
  // four that are read or written by those.
  rowBytes: (1 + 3 + 4 + 4) * width * 4,
  loaded: process.memoryUsage().rss - before,
});
for await (const line of lines) {
  const work = JSON.parse(line);
  if (work.do === 'memory') tell({ peak: process.resourceUsage().maxRSS * 1024 - before });
  // As the demo asks it.
  else if (work.do === 'protocol') tell(await timeProtocol(engine, { ...work, neutral: 32 }));
  else if (work.do === 'editions') tell(await timeEditions(engine, { ...work, neutral: 32 }));
  else if (work.do === 'sweep') tell(await timeSweep(engine, { ...work, neutral: 32 }, (done) => say(`  ${done}`)));
  else tell({ seconds: await timed(() => works[work.do](work)) });
}
await engine.close();
model.close();

function tell(answer) {
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}

async function timed(work) {
  const start = performance.now();
  await work();
  return (performance.now() - start) / 1000;
}

function allLayers() {
  return Array.from({ length: layers }, (_, layer) => ({ point: { layer, place: 'resid_post' }, positions: [-1] }));
}

/** Other prompts each time: what the engine remembers of earlier ones is of no use. */
function varied(prompts) {
  round++;
  return prompts.map((prompt) => prompt.map((token) => (token * 31 + round * 7919) % opened.vocabulary));
}

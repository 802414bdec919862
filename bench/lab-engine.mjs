/** The embedded engine at work, in a process of its own so that its memory can be told: what is asked for is said in JSON on standard input. */

import { readFileSync } from 'node:fs';
import { createEmbeddedEngine, openModelFolder } from '../build/lab.js';
import { timeProtocol, timeSweep } from './timed-protocol.mjs';

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
// As the demo asks it.
if (wanted.protocol) answer.protocol = await timeProtocol(engine, { ...wanted.protocol, neutral: 32 });
if (wanted.sweep) answer.sweep = await timeSweep(engine, { ...wanted.sweep, neutral: 32 });
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

/**
 * Measures what a lab elsewhere costs over one that is here: the same calls by session name through HTTP on loopback to `cuvette lab serve`, and
 * straight to a lab's thread, as the server itself makes them. Both keep their captures and probes in the same folder.
 */

import { join } from 'node:path';
import { agreementPairs, createLabs, openLabThread } from '../build/lab.js';
import { serveLab } from '../scripts/lab/serve-lab.mjs';
import { median, say } from './table.mjs';

const CALLS = 150;
/** The first ones warm up. */
const WARMING = 15;
const LAYER = 1;
const NAME = 'bench';

/** For each call, the medians of both ways in seconds. */
export async function measureRouter({ python, folder }) {
  const home = join(folder, 'home');
  const places = { data: join(home, 'data'), cache: join(home, 'cache'), project: folder };
  say('opening the model that ships, in a lab that is served and in one that is here');
  const server = await serveLab({ model: 'demo', home, python, cwd: folder });
  try {
    const labs = createLabs({ ...places, data: join(folder, 'agent') });
    await labs.attach(NAME, server.url, server.token, context());
    const torch = { python, runtime: join(home, 'run'), dtype: 'float32' };
    const here = await openLabThread({ ...places, model: 'demo', torch }, context());
    try {
      const direct = (tool, args) => here.call(tool, args, context());
      const routed = async (tool, args) => (await labs.call(NAME, tool, args, context())).answer;
      return await measureCalls(routed, direct);
    } finally {
      await here.close();
      await labs.close();
    }
  } finally {
    await server.stop();
  }
}

async function measureCalls(routed, direct) {
  const rows = agreementPairs(1, 8);
  const prompts = rows.map(({ prompt }) => prompt);
  const labels = rows.map(({ label }) => label);
  const { capture_id } = await direct('capture_acts', { prompts, labels, layers: [LAYER] });
  await direct('train_probe', { probe_id: NAME, capture_id, layer: LAYER, method: 'difference-of-means' });
  const calls = {
    colab_status: {},
    probe_eval: { probe_id: NAME, capture_id, n_random: 0 },
    capture_acts: { prompts: prompts.slice(0, 2), layers: [LAYER] },
  };
  const measured = {};
  for (const [tool, args] of Object.entries(calls)) {
    say(`measuring: ${CALLS} calls of ${tool} by either way`);
    const times = { routed: [], direct: [] };
    // They take turns, so that both meet the same weather.
    for (let i = 0; i < WARMING + CALLS; i++) {
      times.direct.push(await timed(() => direct(tool, args)));
      times.routed.push(await timed(() => routed(tool, args)));
    }
    const [through, straight] = [times.routed, times.direct].map((taken) => median(taken.slice(WARMING)));
    say(`  ${ms(through)} through the router, ${ms(straight)} without it: ${(through / straight).toFixed(1)} times`);
    measured[tool] = { routed: through, direct: straight, calls: CALLS };
  }
  return measured;
}

function context() {
  return { signal: new AbortController().signal, progress: () => {} };
}

async function timed(work) {
  const start = performance.now();
  await work();
  return (performance.now() - start) / 1000;
}

function ms(seconds) {
  return `${(1000 * seconds).toPrecision(3)} ms`;
}

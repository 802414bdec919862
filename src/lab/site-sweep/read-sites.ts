/** Reads the activations of all prompts at many sites, all of them in the same runs of the model. */

import { type ProtocolRun, portionOf, portions, runChecked, type Site } from '../causality/readings.ts';
import { missing } from '../core/missing.ts';

/** Numbers that are held at a time: sites beyond them are read, and tested, after these. */
const NUMBERS = 1 << 25;

/** Prompts × width for each site. */
export async function readSites(
  run: ProtocolRun,
  prompts: readonly number[][],
  sites: readonly Site[],
): Promise<Float32Array[]> {
  const { width } = run.engine.describe();
  const read = sites.map(() => new Float32Array(prompts.length * width));
  const taps = sites.map(({ position, ...point }) => ({ point, positions: [position] }));
  for (const [from, to] of portions(prompts.length, portionOf(sites.length * width))) {
    const results = await runChecked(run, { prompts: prompts.slice(from, to), taps });
    results.forEach(({ activations }, i) => {
      for (const [which, rows] of read.entries())
        rows.set(activations[which] ?? missing('activation at site', which), (from + i) * width);
    });
  }
  return read;
}

/** Groups of sites whose activations fit into memory together; `numbers` is what one site takes. */
export function siteGroups<T>(sites: readonly T[], numbers: number): T[][] {
  const size = Math.max(1, Math.floor(NUMBERS / numbers));
  return [...portions(sites.length, size)].map(([from, to]) => sites.slice(from, to));
}

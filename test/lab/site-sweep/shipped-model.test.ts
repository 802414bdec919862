import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Engine } from '../../../src/lab/core/engine.ts';
import { agreementPairs } from '../../../src/lab/demo/datasets.ts';
import { createEmbeddedEngine } from '../../../src/lab/engines/embedded/embedded-engine.ts';
import { openModelFolder } from '../../../src/lab/models/open-model.ts';
import { cellState, concludeSweep } from '../../../src/lab/site-sweep/conclude.ts';
import { mapsOf } from '../../../src/lab/site-sweep/maps.ts';
import { runSweep } from '../../../src/lab/site-sweep/run-sweep.ts';
import { packageFile } from '../../../src/package-root.ts';
import { context } from '../causality/questions.ts';

let engine: Engine;
beforeAll(async () => {
  const model = await openModelFolder(packageFile('models', 'demo'));
  engine = await createEmbeddedEngine({ model, id: 'demo' }).finally(() => model.close());
});
afterAll(() => engine.close());

const POSITIONS = [-5, -4, -3, -2, -1];

async function sweepLayers(layers: number[], positions = POSITIONS) {
  const evidence = await runSweep(
    engine,
    {
      sites: layers.flatMap((layer) =>
        positions.map((position) => ({ layer, place: 'resid_post' as const, position })),
      ),
      directions: [{ name: 'number', direction: { kind: 'fit', method: 'difference-of-means' } }],
      dataset: agreementPairs(1, 48),
      target: { positive: [' are'], negative: [' is'] },
      seed: 1,
    },
    context(),
  );
  const [map] = mapsOf(evidence);
  const states = map?.rows.map((row) => row.map((cell) => cellState(cell, evidence))) ?? [];
  return { evidence, states, conclusion: concludeSweep(evidence) };
}

describe('a sweep over the shipped model', () => {
  test('follows the number of the subject from the noun to the last token, without a gap', async () => {
    const { layers } = engine.describe();
    const all = Array.from({ length: layers }, (_, layer) => layer);
    const { states, conclusion } = await sweepLayers(all);
    expect(conclusion.state).toBe('present');
    // After every layer it is somewhere; at the last token it comes once and stays, at the noun it is there from the beginning and goes.
    for (const row of states) expect(row).toContain('present');
    const [atNoun, atEnd] = [1, 4].map((column) => states.map((row) => row[column]).join(' '));
    expect(atEnd).toMatch(/^(absent )*present( present)*$/);
    expect(atNoun).toMatch(/^present( present)*( absent)*$/);

    const downward = await sweepLayers(all.toReversed());
    expect(downward.states.toReversed()).toEqual(states);
    const some = await sweepLayers([0, layers - 1], [-1]);
    expect(some.states).toEqual([[states[0]?.[4]], [states[layers - 1]?.[4]]]);
  });
});

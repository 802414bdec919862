import { describe, expect, test } from 'vitest';
import { createEmbeddedEngine } from '../../../src/lab/engines/embedded/embedded-engine.ts';
import { openModelFolder } from '../../../src/lab/models/open-model.ts';
import { packageFile } from '../../../src/package-root.ts';
import { twinFamily } from './families/twins.ts';
import { familyOf } from './families.ts';
import { fittedOnInterchange } from './fitted.ts';
import { askEngine, runFamily } from './suite.ts';

const answer = askEngine(
  async (path) => createEmbeddedEngine({ model: await openModelFolder(path), id: 'toy', threads: 1 }),
  { version: '0.0.0', signal: new AbortController().signal },
);

describe('a subspace that is fitted on interchange', () => {
  // Fitted, it finds what is read beside the direction that the family asks about.
  test.each(['causal', 'correlate', 'two dimensions', 'one of two dimensions', 'saturating'])(
    'is causal in the model %s, whose answer is read from the site',
    async (name) => {
      const { evidence, verdict } = await runFamily(fittedOnInterchange(familyOf(name), 2), 2026, answer);
      expect(evidence.interchange.value).toBeGreaterThan(0.8);
      expect(verdict).toBe('causal');
    },
  );

  test.each([
    ['noise', 2026],
    ['noise', 2027],
    ['shuffled labels', 2026],
    ['template', 2026],
    ['temperature', 2026],
    ['content word, spent', 2026],
  ])('is not causal in the model %s with seed %d', async (name, seed) => {
    const { verdict } = await runFamily(fittedOnInterchange(familyOf(name), 2), seed, answer);
    expect(verdict).not.toMatch(/causal$/);
  });

  test('does not wake a pathway that is dormant in the data', async () => {
    const { evidence } = await runFamily(fittedOnInterchange(familyOf('dormant'), 1), 2026, answer);
    expect(Math.abs(evidence.dormancy.rest)).toBeLessThan(0.2);
  });

  test.each([1, 2, 3])("is never causal in the shipped model's random-weights twin: seed %d", async (seed) => {
    const { verdict } = await runFamily(
      fittedOnInterchange(twinFamily(packageFile('models', 'demo')), 2),
      seed,
      answer,
    );
    expect(verdict).not.toBe('causal');
  });
});

import { describe, expect, test } from 'vitest';
import type { CausalQuestion } from '../../../src/lab/causality/question.ts';
import { createEmbeddedEngine } from '../../../src/lab/engines/embedded/embedded-engine.ts';
import { openModelFolder } from '../../../src/lab/models/open-model.ts';
import { temporaryFolder } from '../../temporary-folder.ts';
import { FAMILIES } from './families.ts';
import { writeModelFolder } from './models/model-folder.ts';
import { measureShares } from './shares.ts';

const SEED = 2026;

describe('families of known structure', () => {
  test('have names of their own, and are twenty-five at least', () => {
    expect(new Set(FAMILIES.map(({ name }) => name)).size).toBe(FAMILIES.length);
    expect(FAMILIES.length).toBeGreaterThanOrEqual(25);
  });

  test.each(FAMILIES.filter(({ shares }) => shares))(
    '$name is as built: interventions by hand show its shares',
    async (family) => {
      const { files, question } = family.make(SEED);
      const shares = await sharesIn(files, question);
      for (const [name, [low, high]] of Object.entries(family.shares ?? {})) {
        const found = Object.entries(shares).find(([one]) => one === name)?.[1];
        expect(found, name).toBeGreaterThanOrEqual(low);
        expect(found, name).toBeLessThanOrEqual(high);
      }
      expect(Math.abs(shares.gap)).toBeGreaterThan(0.1);
    },
  );
});

async function sharesIn(files: Record<string, Uint8Array | string>, question: CausalQuestion) {
  const place = temporaryFolder();
  writeModelFolder(place, files);
  const engine = await createEmbeddedEngine({ model: await openModelFolder(place), id: 'toy', threads: 1 });
  try {
    return await measureShares(engine, question);
  } finally {
    await engine.close();
  }
}

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { decide } from '../../../src/lab/causality/decide.ts';
import { runProtocol } from '../../../src/lab/causality/protocol.ts';
import { createEmbeddedEngine } from '../../../src/lab/engines/embedded/embedded-engine.ts';
import { openModelFolder } from '../../../src/lab/models/open-model.ts';
import { packageFile } from '../../../src/package-root.ts';
import { askEngine, runCase, runGroundTruth } from './suite.ts';
import { CASE_NAMES, makeToyQuestion } from './toy-questions.ts';
import { writeRandomTwin } from './twin.ts';

const SEED = 2026;

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'cuvette-ground-truth-test-'));
});

afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

async function engineFor(path: string) {
  return createEmbeddedEngine({ model: await openModelFolder(path), id: 'toy', threads: 1 });
}

const context = { version: '0.0.0', signal: new AbortController().signal };
const answer = askEngine(engineFor, context);

describe('the protocol on models of known causal structure', () => {
  test.each(CASE_NAMES)('is right about %s', async (name) => {
    const run = await runCase(name, SEED, answer);
    expect(run, `${run.verdict}: ${run.reason}`).toMatchObject({ correct: true, rightReason: true });
  });

  test('gives the same evidence from the same seed', async () => {
    const [first, second] = [await runCase('causal', SEED, answer), await runCase('causal', SEED, answer)];
    expect(JSON.stringify(second.evidence)).toBe(
      JSON.stringify(first.evidence).replaceAll(first.evidence.model.id, second.evidence.model.id),
    );
  });

  test('counts what it was right about', async () => {
    const result = await runGroundTruth({ answer, seeds: [SEED], cases: ['template', 'noise'] });
    expect(result).toMatchObject({ runs: 2, correct: 2, rightReasons: 2, falsePositives: { count: 0, of: 1 } });
    expect(result.confusion.get('template')?.get('epiphenomenal-template')).toBe(1);
  });

  test("never calls a direction of the shipped model's random-weights twin causal", async () => {
    const twinOf = packageFile('models', 'demo');
    const result = await runGroundTruth({ answer, seeds: [SEED], cases: [], twinOf });
    expect(result).toMatchObject({ runs: 1, correct: 1 });
    expect(result.confusion.get('twin')?.has('causal')).toBe(false);
  });

  test('never calls a direction of a random-weights twin causal, whatever its target', async () => {
    const [model, twin] = [join(folder, 'model'), join(folder, 'twin')];
    const { question } = makeToyQuestion(model, 'causal', SEED);
    writeRandomTwin(model, twin, SEED);
    const engine = await engineFor(twin);
    try {
      const { target: _, ...chosen } = question;
      for (const asked of [question, chosen]) {
        const evidence = await runProtocol(engine, asked, { ...context, family: 1 });
        expect(decide(evidence).verdict).not.toBe('causal');
      }
    } finally {
      await engine.close();
    }
  });
});

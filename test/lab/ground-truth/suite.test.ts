import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { decide } from '../../../src/lab/causality/decide.ts';
import { runProtocol } from '../../../src/lab/causality/protocol.ts';
import { createEmbeddedEngine } from '../../../src/lab/engines/embedded/embedded-engine.ts';
import { openModelFolder } from '../../../src/lab/models/open-model.ts';
import { packageFile } from '../../../src/package-root.ts';
import { FIRST_FAMILIES } from './families/first.ts';
import { twinFamily } from './families/twins.ts';
import { familyOf } from './families.ts';
import { writeModelFolder } from './models/model-folder.ts';
import { writeRandomTwin } from './models/twin.ts';
import { askEngine, judge, runFamilies, runFamily } from './suite.ts';
import { falsePositives, tally } from './tally.ts';

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
  test.each(FIRST_FAMILIES)('is right about $name', async (family) => {
    const run = await runFamily(family, SEED, answer);
    expect(run, `${run.verdict}: ${run.reason}`).toMatchObject({ outcome: 'right', rightReason: true });
  });

  test('gives the same evidence from the same seed', async () => {
    const causal = familyOf('causal');
    const [first, second] = [await runFamily(causal, SEED, answer), await runFamily(causal, SEED, answer)];
    expect(JSON.stringify(second.evidence)).toBe(
      JSON.stringify(first.evidence).replaceAll(first.evidence.model.id, second.evidence.model.id),
    );
  });

  test('is counted by family, truth and verdict', async () => {
    const runs = await runFamilies([familyOf('template'), familyOf('noise')], [SEED], answer);
    const { confusion, families, ...counts } = tally(runs);
    expect(counts).toEqual({ runs: 2, right: 2, abstained: 0, rightReasons: 2 });
    expect(families.get('noise')).toMatchObject({ right: 1, of: 1 });
    expect(confusion.get('epiphenomenal-template')?.get('epiphenomenal-template')).toBe(1);
    expect(falsePositives(runs)).toMatchObject({ count: 0, of: 2 });
  });

  test('is not counted as right where it asks for more data, nor as wrong', () => {
    const truth = { verdict: 'causal', reasons: ['sufficient-and-necessary'] } as const;
    expect(judge({ verdict: 'undetermined', reason: 'underpowered' }, truth).outcome).toBe('abstained');
    expect(judge({ verdict: 'undetermined', reason: 'not-decodable' }, truth).outcome).toBe('wrong');
    expect(judge({ verdict: 'weak-causal', reason: 'partial-mediator' }, truth).outcome).toBe('wrong');
    expect(judge({ verdict: 'causal', reason: 'other' }, truth)).toMatchObject({
      outcome: 'right',
      rightReason: false,
    });
  });

  test("never calls a direction of the shipped model's random-weights twin causal", async () => {
    const run = await runFamily(twinFamily(packageFile('models', 'demo')), SEED, answer);
    expect(falsePositives([run]).count).toBe(0);
  });

  test('never calls a direction of a random-weights twin causal, whatever its target', async () => {
    const [model, twin] = [join(folder, 'model'), join(folder, 'twin')];
    const { files, question } = familyOf('causal').make(SEED);
    writeModelFolder(model, files);
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

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { decide } from '../../../src/lab/causality/decide.ts';
import { runProtocol } from '../../../src/lab/causality/protocol.ts';
import type { CausalQuestion } from '../../../src/lab/causality/question.ts';
import type { Engine } from '../../../src/lab/core/engine.ts';
import { createEmbeddedEngine } from '../../../src/lab/engines/embedded/embedded-engine.ts';
import { openModelFolder } from '../../../src/lab/models/open-model.ts';
import { createRandom } from '../../../src/lab/statistics/random.ts';
import { allOnCi } from '../../sample.ts';
import { familyOf } from '../ground-truth/families.ts';
import { writeModelFolder } from '../ground-truth/models/model-folder.ts';
import { amplify, rotate } from './rewritten-models.ts';

/** One of each verdict that the tested direction decides, on models that are drawn anew from these seeds. */
const CASES: [string, number][] = [
  ['causal', 711],
  ['correlate', 712],
  ['partial', 713],
  ['redundant', 714],
  ['dormant', 715],
];

let home: string;

beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), 'cuvette-properties-'));
});

afterAll(() => {
  rmSync(home, { recursive: true, force: true });
});

interface Asked {
  folder: string;
  question: CausalQuestion;
  /** Which question of the lab session it is. */
  number?: number;
  wrap?(engine: Engine): Engine;
}

async function verdictOf({ folder, question, number = 1, wrap = (engine) => engine }: Asked): Promise<string> {
  const engine = await createEmbeddedEngine({ model: await openModelFolder(folder), id: 'toy', threads: 1 });
  try {
    const { signal } = new AbortController();
    const { verdict, reason } = decide(
      await runProtocol(wrap(engine), question, { signal, family: number, version: '0.0.0' }),
    );
    return `${verdict} : ${reason}`;
  } finally {
    await engine.close();
  }
}

const known = new Map<string, Promise<string>>();

function original(name: string, seed: number): { folder: string; question: CausalQuestion; verdict: Promise<string> } {
  const folder = join(home, `${name}-${seed}`);
  const { files, question } = familyOf(name).make(seed);
  writeModelFolder(folder, files);
  const verdict = known.get(name) ?? verdictOf({ folder, question });
  known.set(name, verdict);
  return { folder, question, verdict };
}

function withVector(question: CausalQuestion, change: (vector: readonly number[]) => number[]): CausalQuestion {
  const { direction } = question;
  return direction.kind === 'given'
    ? { ...question, direction: { ...direction, vector: change(direction.vector) } }
    : question;
}

/** All logits times a factor, and more by a number, as engines give them. */
function withLogits(scale: number, offset: number) {
  return (engine: Engine): Engine => ({
    ...engine,
    async run(request, signal) {
      const results = await engine.run(request, signal);
      return results.map(({ logits, ...rest }) => ({
        ...rest,
        ...(logits && { logits: logits.map((value) => scale * value + offset) }),
      }));
    },
  });
}

describe.each(allOnCi(CASES, 1))('the verdict on the model %s', (name, seed) => {
  test.each([0.2, 0.5, 2, 5])("does not change when the read-out's gain is multiplied by %d", async (gain) => {
    const { folder, question, verdict } = original(name, seed);
    const louder = join(home, `${name}-gain-${gain}`);
    amplify(folder, louder, gain);
    expect(await verdictOf({ folder: louder, question })).toBe(await verdict);
  });

  test('does not change when the residual stream is rotated', async () => {
    const { folder, question, verdict } = original(name, seed);
    const turned = join(home, `${name}-turned`);
    const turn = rotate(folder, turned, seed);
    expect(await verdictOf({ folder: turned, question: withVector(question, turn) })).toBe(await verdict);
  });

  test.each([
    [1, 40],
    [0.5, -7],
    [2, 0],
  ])('does not change when all logits are multiplied by %d and raised by %d', async (scale, offset) => {
    const { folder, question, verdict } = original(name, seed);
    expect(await verdictOf({ folder, question, wrap: withLogits(scale, offset) })).toBe(await verdict);
  });

  test('does not change when labels and target words are both swapped', async () => {
    const { folder, question, verdict } = original(name, seed);
    const { dataset, target } = question;
    const swapped: CausalQuestion = {
      ...question,
      dataset: dataset.map((row) => ({ ...row, label: row.label === 1 ? 0 : 1 })),
      ...(target && { target: { positive: target.negative, negative: target.positive } }),
    };
    expect(await verdictOf({ folder, question: swapped })).toBe(await verdict);
  });

  test('does not change when the direction points the other way', async () => {
    const { folder, question, verdict } = original(name, seed);
    expect(await verdictOf({ folder, question: withVector(question, opposite) })).toBe(await verdict);
  });

  test('does not change when prompts are permuted', async () => {
    const { folder, question, verdict } = original(name, seed);
    const dataset = createRandom(seed, 'permuted prompts').shuffle(question.dataset);
    expect(await verdictOf({ folder, question: { ...question, dataset } })).toBe(await verdict);
  });

  test('does not change when forty questions were asked before', async () => {
    const { folder, question, verdict } = original(name, seed);
    expect(await verdictOf({ folder, question, number: 41 })).toBe(await verdict);
  });
});

function opposite(vector: readonly number[]): number[] {
  return vector.map((value) => -value);
}

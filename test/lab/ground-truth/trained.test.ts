import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { decide } from '../../../src/lab/causality/decide.ts';
import { runProtocol } from '../../../src/lab/causality/protocol.ts';
import type { Engine } from '../../../src/lab/core/engine.ts';
import { agreementPairs, neutralPrompts } from '../../../src/lab/demo/datasets.ts';
import { createEmbeddedEngine } from '../../../src/lab/engines/embedded/embedded-engine.ts';
import { openModelFolder } from '../../../src/lab/models/open-model.ts';
import { packageFile } from '../../../src/package-root.ts';
import { KNOWN_TASK_LAYERS, KNOWN_TASK_WORD, knownTaskFiles, knownTaskQuestion } from './families/trained.ts';
import { type AskNth, tellLayerStory } from './layer-story.ts';
import { writeModelFolder } from './models/model-folder.ts';
import { measureShares, type Shares } from './shares.ts';

const SEED = 2026;
const LAYERS = Array.from({ length: KNOWN_TASK_LAYERS }, (_, layer) => layer);

function protocolOf(engine: Engine): AskNth {
  const context = { version: '0.0.0', signal: new AbortController().signal };
  return async (question, family) => decide(await runProtocol(engine, question, { ...context, family }));
}

async function open(folder: string): Promise<Engine> {
  return createEmbeddedEngine({ model: await openModelFolder(folder), id: 'trained', threads: 1 });
}

describe('a model that was trained on a task with a known algorithm', () => {
  let folder: string;
  let engine: Engine;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'cuvette-trained-test-'));
    writeModelFolder(folder, knownTaskFiles());
    engine = await open(folder);
  });
  afterAll(async () => {
    await engine.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const throughAt = async (position: number): Promise<number[]> => {
    const shares: Shares[] = [];
    for (const layer of LAYERS) shares.push(await measureShares(engine, knownTaskQuestion(SEED, layer, position)));
    return shares.map(({ through }) => through);
  };

  test('has the answer at the question mark in the end, and no more at the word', async () => {
    const [atWord, atEnd] = [await throughAt(KNOWN_TASK_WORD), await throughAt(-1)];
    expect(atEnd.at(-1)).toBeCloseTo(1, 2);
    expect(atWord.at(-1)).toBeCloseTo(0, 5);
  });

  test('gets verdicts after each block that do not contradict each other, in whichever order they are asked', async () => {
    const question = knownTaskQuestion(SEED, 0, -1);
    const story = await tellLayerStory(question, KNOWN_TASK_LAYERS, protocolOf(engine));
    expect(story.contradictions, story.upward.join(' → ')).toEqual([]);
  });
});

test('the model that ships gets verdicts after each block that do not contradict each other, in whichever order they are asked', async () => {
  const engine = await open(packageFile('models', 'demo'));
  try {
    const question = {
      ...knownTaskQuestion(SEED, 0, -1),
      dataset: agreementPairs(SEED, 32),
      target: { positive: [' are'], negative: [' is'] },
      neutralPrompts: neutralPrompts(SEED, 24),
    };
    const story = await tellLayerStory(question, engine.describe().layers, protocolOf(engine));
    expect(story.contradictions, story.upward.join(' → ')).toEqual([]);
  } finally {
    await engine.close();
  }
});

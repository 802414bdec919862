/** Opens a lab with the toy engine, in a folder that exists for one test. */

import { onTestFinished } from 'vitest';
import type { Lab } from '../../src/lab/core/lab.ts';
import { createLab } from '../../src/lab/local/local-lab.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { createToyEngine, type ToyEngine, toyPairs } from './toy-engine.ts';

export interface ToyLab {
  lab: Lab;
  engine: ToyEngine;
  folder: string;
  told: string[];
  call(name: string, args?: Record<string, unknown>, signal?: AbortSignal): Promise<Record<string, unknown>>;
  /** Captures the pairs after block 0, at the last word. */
  capturePairs(count: number, more?: Record<string, unknown>): Promise<string>;
}

export function toyLab(folder = temporaryFolder(), engine = createToyEngine()): ToyLab {
  const lab = createLab(engine, { data: folder, cache: folder, project: folder }, undefined);
  onTestFinished(() => lab.close());
  const told: string[] = [];
  const call: ToyLab['call'] = (name, args = {}, signal = new AbortController().signal) =>
    lab.call(name, args, { signal, progress: (message) => told.push(message) });
  return {
    lab,
    engine,
    folder,
    told,
    call,
    async capturePairs(count, more = {}) {
      const { prompts, labels, pairs } = toyPairs(count);
      const answer = await call('capture_acts', { prompts, labels, pair_ids: pairs, layers: [0], ...more });
      return String(answer.capture_id);
    },
  };
}

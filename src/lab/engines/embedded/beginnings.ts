/** Owns which prompts begin alike: what has been computed of the tokens that two of them share is copied, and not computed again. */

import type { ModelSpec } from '../../models/architectures/model-spec.ts';
import type { Heap } from './heap.ts';
import type { PromptRecord } from './prompt-records.ts';

export interface Beginnings {
  /** Of a record that has been computed. */
  remember(record: PromptRecord): void;
  forget(record: PromptRecord): void;
  /** The record that begins like this text and was remembered last, and how many tokens they share: never all of the text's. */
  like(tokens: readonly number[]): Alike | undefined;
  /** Copies keys and values of the shared tokens, for the layers before `depth`. */
  copyKeysAndValues({ record, length }: Alike, to: PromptRecord, depth: number): void;
}

export interface Alike {
  record: PromptRecord;
  length: number;
}

/** Fewer tokens are not worth it. */
const FEWEST = 8;

export function createBeginnings(spec: ModelSpec, heap: Heap): Beginnings {
  const records = new Map<string, PromptRecord>();

  return {
    remember(record) {
      const key = beginningOf(record.tokens);
      if (key !== undefined) records.set(key, record);
    },

    forget(record) {
      const key = beginningOf(record.tokens);
      if (key !== undefined && records.get(key) === record) records.delete(key);
    },

    like(tokens) {
      const record = records.get(beginningOf(tokens) ?? '');
      if (!record) return undefined;
      let length = FEWEST;
      while (length < tokens.length - 1 && tokens[length] === record.tokens[length]) length++;
      return { record, length };
    },

    copyKeysAndValues({ record, length }, to, depth) {
      const count = length * spec.headWidth;
      for (let layer = 0; layer < depth; layer++) {
        for (let head = 0; head < 2 * spec.keyValueHeads; head++) {
          heap.floats(headAt(to, layer, head), count).set(heap.floats(headAt(record, layer, head), count));
        }
      }
    },
  };

  /** Where the keys of a head begin, and from the number of heads on the values. */
  function headAt({ store }: PromptRecord, layer: number, head: number): number {
    return store.address + layer * store.layerBytes + (head * store.layerBytes) / (2 * spec.keyValueHeads);
  }
}

/** The same for texts that may share work; undefined for those that are too short. */
export function beginningOf(tokens: readonly number[]): string | undefined {
  return tokens.length > FEWEST ? tokens.slice(0, FEWEST).join() : undefined;
}

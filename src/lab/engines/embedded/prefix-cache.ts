/** Finds a cached prompt that begins with the same tokens as a new one, so that keys, values and residual streams of the shared prefix are copied, not computed again. */

import type { ModelSpec } from '../../models/architectures/model-spec.ts';
import { isLongText } from '../../models/architectures/rotary.ts';
import type { Heap } from './heap.ts';
import type { CachedPrompt } from './kv-cache.ts';

export interface PrefixCache {
  /** Equal for prompts that can share a prefix; undefined for prompts that are too short. */
  keyOf(tokens: readonly number[]): string | undefined;
  /** Takes a prompt that has been computed. */
  add(cached: CachedPrompt): void;
  remove(cached: CachedPrompt): void;
  /** The prompt with the same prefix that was added last, and how many tokens they share: never all of them, as the last one must be computed. */
  find(tokens: readonly number[]): SharedPrefix | undefined;
  /** Copies keys and values of the shared tokens, for the layers before `depth`. */
  copyKeysAndValues({ cached, length }: SharedPrefix, to: CachedPrompt, depth: number): void;
}

export interface SharedPrefix {
  cached: CachedPrompt;
  length: number;
}

/** Tokens; a shorter prefix costs more to copy than to compute. */
const MIN_LENGTH = 8;

export function createPrefixCache(spec: ModelSpec, heap: Heap): PrefixCache {
  const prompts = new Map<string, CachedPrompt>();

  return {
    keyOf,

    add(cached) {
      const key = keyOf(cached.tokens);
      if (key !== undefined) prompts.set(key, cached);
    },

    remove(cached) {
      const key = keyOf(cached.tokens);
      if (key !== undefined && prompts.get(key) === cached) prompts.delete(key);
    },

    find(tokens) {
      const cached = prompts.get(keyOf(tokens) ?? '');
      if (!cached) return undefined;
      let length = MIN_LENGTH;
      while (length < tokens.length - 1 && tokens[length] === cached.tokens[length]) length++;
      return { cached, length };
    },

    copyKeysAndValues({ cached, length }, to, depth) {
      const count = length * spec.headWidth;
      for (let layer = 0; layer < depth; layer++) {
        for (let head = 0; head < 2 * spec.keyValueHeads; head++) {
          heap.floats(headAt(to, layer, head), count).set(heap.floats(headAt(cached, layer, head), count));
        }
      }
    },
  };

  /** A long text shares nothing with a short one where that changes the frequencies of its rotary embedding. */
  function keyOf(tokens: readonly number[]): string | undefined {
    if (tokens.length <= MIN_LENGTH) return undefined;
    return `${isLongText(spec, tokens.length)} ${tokens.slice(0, MIN_LENGTH).join()}`;
  }

  /** The address of the keys of a head; heads are counted on for the values. */
  function headAt({ store }: CachedPrompt, layer: number, head: number): number {
    return store.address + layer * store.layerBytes + (head * store.layerBytes) / (2 * spec.keyValueHeads);
  }
}

/**
 * Counts the causal questions of a lab session, which p values are adjusted for. The count is on disk, so that neither an agent nor a restart loses it.
 * A lab session ends half a day after its last question.
 */

import { join } from 'node:path';
import * as z from 'zod';
import { CuvetteError } from '../../errors.ts';
import { withLock } from '../../file-lock.ts';
import { writeDurably } from '../core/durable-files.ts';
import { readIfThere, whyInvalid } from '../core/json-files.ts';

export interface Family {
  /** Counts a question, by its hash, unless it was asked before. */
  count(question: string, signal: AbortSignal): Promise<Counted>;
  size(): Promise<number>;
}

export interface Counted {
  /** How many questions there are, this one included. */
  size: number;
  /** Takes the question out of the count, because it got no answer; not if it was counted before. */
  forget(): Promise<void>;
}

const SESSION_ENDS_AFTER = 12 * 3_600_000;

const fileSchema = z.object({ last: z.number(), questions: z.array(z.string()) });

export function createFamily(folder: string, now: () => number = Date.now): Family {
  const path = join(folder, 'family.json');

  async function asked(): Promise<string[]> {
    const text = await readIfThere(path);
    if (text === undefined) return [];
    const { last, questions } = parse(path, text);
    return now() - last < SESSION_ENDS_AFTER ? questions : [];
  }

  function change(signal: AbortSignal | undefined, to: (questions: string[]) => string[]): Promise<string[]> {
    return withLock(`${path}.lock`, signal, async () => {
      const questions = to(await asked());
      await writeDurably(path, JSON.stringify({ last: now(), questions }));
      return questions;
    });
  }

  return {
    async count(question, signal) {
      let isNew = false;
      const { length } = await change(signal, (questions) => {
        isNew = !questions.includes(question);
        return isNew ? [...questions, question] : questions;
      });
      return {
        size: length,
        async forget() {
          if (isNew) await change(undefined, (questions) => questions.filter((one) => one !== question));
        },
      };
    },
    size: async () => (await asked()).length,
  };
}

/** Without the count, p values would be adjusted for too few questions. */
function parse(path: string, text: string): z.infer<typeof fileSchema> {
  try {
    return fileSchema.parse(JSON.parse(text));
  } catch (error) {
    throw new CuvetteError(
      'folder_unusable',
      `${path} does not tell which questions were asked before: ${whyInvalid(error)}. Remove it to begin a new family of questions.`,
      { cause: error },
    );
  }
}

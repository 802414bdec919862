/**
 * Numbers the causal questions of a lab session, each of which spends a part of one error rate. The numbers are on disk, so that neither an agent nor a
 * restart loses them. A lab session ends half a day after its last question.
 */

import { join } from 'node:path';
import * as z from 'zod';
import { CuvetteError } from '../../errors.ts';
import { withLock } from '../../file-lock.ts';
import { writeDurably } from '../core/durable-files.ts';
import { readIfThere, whyInvalid } from '../core/json-files.ts';
import { levelOfQuestion } from '../statistics/alpha-spending.ts';

export interface Family {
  /** Counts a question, by its hash, unless it was asked before. */
  count(question: string, signal: AbortSignal): Promise<Counted>;
  /** How many questions there are, and what they have spent of the error rate. */
  state(): Promise<{ size: number; spent: number }>;
}

export interface Counted {
  /** From 1 on. A question that is asked again has the number that it had. */
  number: number;
  /** Takes the question out of the count, because it got no answer; not if it was counted before. */
  forget(): Promise<void>;
}

const SESSION_ENDS_AFTER = 12 * 3_600_000;

const fileSchema = z.object({
  last: z.number(),
  /** Null where a question got no answer: the next one takes its place. */ questions: z.array(z.string().nullable()),
});

export function createFamily(folder: string, now: () => number = Date.now): Family {
  const path = join(folder, 'family.json');

  async function asked(): Promise<Asked> {
    const text = await readIfThere(path);
    if (text === undefined) return [];
    const { last, questions } = parse(path, text);
    return now() - last < SESSION_ENDS_AFTER ? questions : [];
  }

  function change(signal: AbortSignal | undefined, to: (questions: Asked) => Asked): Promise<Asked> {
    return withLock(`${path}.lock`, signal, async () => {
      const questions = to(await asked());
      await writeDurably(path, JSON.stringify({ last: now(), questions }));
      return questions;
    });
  }

  return {
    async count(question, signal) {
      let isNew = false;
      const questions = await change(signal, (before) => {
        isNew = !before.includes(question);
        return isNew ? withQuestion(before, question) : before;
      });
      return {
        number: questions.indexOf(question) + 1,
        async forget() {
          if (isNew) await change(undefined, (before) => before.map((one) => (one === question ? null : one)));
        },
      };
    },
    async state() {
      const numbers = (await asked()).flatMap((question, index) => (question === null ? [] : [index + 1]));
      return { size: numbers.length, spent: numbers.reduce((total, number) => total + levelOfQuestion(number), 0) };
    },
  };
}

type Asked = z.infer<typeof fileSchema>['questions'];

/** At the first free place. */
function withQuestion(questions: Asked, question: string): Asked {
  const free = questions.indexOf(null);
  return free < 0 ? [...questions, question] : questions.with(free, question);
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

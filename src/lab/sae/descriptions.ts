/** Reads descriptions of SAE features from descriptions.json or explanations.json. */

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import { CuvetteError, messageOf } from '../../errors.ts';

/** Neuronpedia's export, which calls the list `explanations` or gives it bare. */
const Explanation = z.object({ index: z.coerce.number().int().nonnegative(), description: z.string() });
const Explanations = z.array(Explanation);

const Descriptions = z.union([
  Explanations,
  z.object({ explanations: Explanations }).transform(({ explanations }) => explanations),
  // A plain list or table: the feature's number, and its text.
  z.array(z.string().nullable()).transform((texts) => texts.map((text, index) => ({ index, description: text ?? '' }))),
  z
    .record(z.string().regex(/^\d+$/), z.string())
    .transform((table) => Object.entries(table).map(([index, description]) => ({ index: Number(index), description }))),
]);

export function readDescriptions(folder: string, features: number): Map<number, string> | undefined {
  const path = ['descriptions.json', 'explanations.json'].map((name) => join(folder, name)).find(existsSync);
  if (path === undefined) return undefined;
  const found = parse(path).filter(({ index, description }) => index < features && description !== '');
  return new Map(found.map(({ index, description }) => [index, description]));
}

function parse(path: string): z.infer<typeof Descriptions> {
  try {
    return Descriptions.parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch (error) {
    const reason = error instanceof z.ZodError ? 'it is of another form' : messageOf(error);
    throw new CuvetteError(
      'bad_model',
      `${path} cannot be read: ${reason}. Write an object of texts by feature number, as {"12": "plural nouns"}, or Neuronpedia's list of { index, description }.`,
      { cause: error },
    );
  }
}

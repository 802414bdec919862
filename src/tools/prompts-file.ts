/** Parses a file of prompts, so that an agent need not write thousands of them into a call. */

import { extname } from 'node:path';
import * as z from 'zod';
import { CuvetteError, messageOf } from '../errors.ts';

const rowSchema = z.union([
  z.string().transform((prompt) => ({ prompt })),
  z.object({
    prompt: z.string(),
    label: z.union([z.number(), z.string()]).optional(),
    pair_id: z.union([z.string(), z.number()]).optional(),
    template_id: z.union([z.string(), z.number()]).optional(),
  }),
]);

type Row = { prompt: string; label?: number | string | undefined; pair_id?: unknown; template_id?: unknown };

/** Returns the columns of the file as arguments: prompts, and of the other fields those that every row has. */
export function readPromptsFile({ path, text }: { path: string; text: string }): Record<string, unknown[]> {
  const rows = readRows(path, text);
  if (rows.length === 0) throw new CuvetteError('invalid_input', `${path} has no prompts. ${FORM}`);
  const columns = Object.entries(COLUMNS).flatMap(([argument, name]) => {
    const values = rows.map((row) => row[name]);
    const missing = values.indexOf(undefined);
    if (values.every((value) => value === undefined)) return [];
    if (missing === -1) return [[argument, values]];
    throw new CuvetteError(
      'invalid_input',
      `${path} has ${name} in some rows, but not in row ${missing}. Give it in all, or in none.`,
    );
  });
  return { prompts: rows.map(({ prompt }) => prompt), ...Object.fromEntries(columns) };
}

const COLUMNS = { labels: 'label', pair_ids: 'pair_id', template_ids: 'template_id' } as const;

const FORM =
  'It should have a JSON object a line, as in {"prompt": "The keys", "label": 1, "pair_id": "a", "template_id": "t"}, of which prompt alone is needed; or a prompt a line, if its name ends in .txt.';

function readRows(path: string, text: string): Row[] {
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== '');
  if (extname(path) === '.txt') return lines.map((prompt) => ({ prompt }));
  try {
    const values: unknown[] =
      extname(path) === '.json' ? z.array(z.unknown()).parse(JSON.parse(text)) : lines.map(parse);
    return values.map((value) => rowSchema.parse(value));
  } catch (error) {
    const why = error instanceof z.ZodError ? z.prettifyError(error) : messageOf(error);
    throw new CuvetteError('invalid_input', `${path} is not a file of prompts: ${why}. ${FORM}`, { cause: error });
  }
}

function parse(line: string, index: number): unknown {
  try {
    return JSON.parse(line);
  } catch (error) {
    throw new Error(`line ${index + 1} is not JSON`, { cause: error });
  }
}

/** Stores captures on disk, one folder each: activations in safetensors, the rest in JSON. Evicts the least recently used when they take too much space. */

import { readdir, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import { CuvetteError } from '../../errors.ts';
import { createIncomingFolder, isIncoming, writeDurably } from '../core/durable-files.ts';
import { readIfThere, whyInvalid } from '../core/json-files.ts';
import { openSafetensors } from '../formats/safetensors.ts';
import { type ActivationsWriter, createActivationsWriter } from './activations-file.ts';

/** The number of a class, or its name. */
const label = z.union([z.number(), z.string()]);

const captureSchema = z
  .object({
    format: z.literal(1),
    model: z.object({ id: z.string(), weights: z.string(), tokenizer: z.string() }),
    /** Hook points by name. */
    points: z.array(z.string()),
    /** As they were asked for, and what that means: negative ones count from a prompt's end. */
    positions: z.array(z.object({ spec: z.union([z.string(), z.number()]), position: z.number() })),
    width: z.number(),
    prompts: z.array(z.string()),
    tokenCounts: z.array(z.number()),
    labels: z.array(label).optional(),
    pairs: z.array(z.string()).optional(),
    templates: z.array(z.string()).optional(),
    /** SHA-256 of the prompts with what is known of them, and of the activations. */
    data: z.string(),
    activations: z.string(),
  })
  .superRefine(({ prompts, tokenCounts, labels, pairs, templates }, context) => {
    for (const [name, list] of Object.entries({ tokenCounts, labels, pairs, templates })) {
      if (list === undefined || list.length === prompts.length) continue;
      context.addIssue({ code: 'custom', path: [name], message: `${list.length} for ${prompts.length} prompts` });
    }
  });

export type CaptureRecord = z.infer<typeof captureSchema>;
export type Label = z.infer<typeof label>;

export interface Capture extends CaptureRecord {
  id: string;
  /** Prompts × width, at one hook point and position of the capture. */
  rows(point: string, position: number): Float32Array;
}

export interface CaptureDraft {
  append(point: string, position: number, rows: Float32Array): Promise<void>;
  /** SHA-256 of what was appended. */
  finish(): Promise<string>;
  keep(id: string, record: CaptureRecord): Promise<void>;
  /** Must be called in the end; after `keep` it does nothing. */
  discard(): Promise<void>;
}

export interface CaptureStore {
  draft(shape: {
    points: readonly string[];
    positions: readonly number[];
    prompts: number;
    width: number;
  }): Promise<CaptureDraft>;
  get(id: string): Promise<Capture>;
  ids(): Promise<string[]>;
}

const RECORD = 'capture.json';
const ACTIVATIONS = 'activations.safetensors';

export function createCaptureStore(folder: string, mostBytes: number): CaptureStore {
  async function ids(): Promise<string[]> {
    const names = await readdir(folder).catch(() => []);
    return names.filter((name) => !isIncoming(name)).sort();
  }

  return {
    ids,
    async draft({ points, positions, prompts, width }) {
      const incoming = await createIncomingFolder(folder);
      const tensors = points.flatMap((point) => positions.map((position) => tensorName(point, position)));
      const shape = { rows: prompts, width };
      const writer = await openWriter(join(incoming.path, ACTIVATIONS), tensors, shape, incoming.discard);
      let isKept = false;
      return {
        append: (point, position, rows) => writer.append(tensorName(point, position), rows),
        finish: () => writer.finish(),
        async keep(id, record) {
          await writer.close();
          await writeDurably(join(incoming.path, RECORD), JSON.stringify(record));
          await incoming.keep(id);
          isKept = true;
          await evict(folder, await ids(), id, mostBytes);
        },
        async discard() {
          if (isKept) return;
          await writer.close().catch(() => {});
          await incoming.discard();
        },
      };
    },
    async get(id) {
      const path = join(folder, id);
      const record = /^[\w-]+$/.test(id) ? await readRecord(join(path, RECORD)) : undefined;
      if (!record) throw unknownCapture(id, await ids());
      // Eviction goes by this time.
      await utimes(path, new Date(), new Date()).catch(() => {});
      return {
        ...record,
        id,
        rows: (point, position) => readRows(id, record, join(path, ACTIVATIONS), point, position),
      };
    },
  };
}

async function openWriter(
  path: string,
  tensors: string[],
  shape: { rows: number; width: number },
  discard: () => Promise<void>,
): Promise<ActivationsWriter> {
  try {
    return await createActivationsWriter(path, tensors, shape);
  } catch (error) {
    await discard();
    throw error;
  }
}

async function readRecord(path: string): Promise<CaptureRecord | undefined> {
  const text = await readIfThere(path);
  if (text === undefined) return undefined;
  try {
    return captureSchema.parse(JSON.parse(text));
  } catch (error) {
    throw new CuvetteError(
      'bad_model',
      `${path} is not a capture of this version, or is damaged. Capture again with capture_acts. ${whyInvalid(error)}`,
      { cause: error },
    );
  }
}

function readRows(id: string, record: CaptureRecord, path: string, point: string, position: number): Float32Array {
  if (!record.points.includes(point))
    throw new CuvetteError('invalid_input', `The capture ${id} has no ${point}. It has: ${record.points.join(', ')}.`);
  if (!record.positions.some((known) => known.position === position)) {
    const known = record.positions.map(({ spec }) => spec).join(', ');
    throw new CuvetteError('invalid_input', `The capture ${id} has no position ${position}. It has: ${known}.`);
  }
  const file = openSafetensors(path);
  try {
    const rows = file.float32(tensorName(point, position));
    const wanted = record.prompts.length * record.width;
    if (rows.length === wanted) return rows;
    throw new CuvetteError(
      'bad_model',
      `${path} has ${rows.length} numbers for ${point} at ${position}, and ${record.prompts.length} prompts of width ${record.width} have ${wanted}. Capture again with capture_acts.`,
    );
  } finally {
    file.close();
  }
}

function tensorName(point: string, position: number): string {
  return `${point}@${position}`;
}

/** Evicts the least recently used captures until the rest fits. The newest stays whatever its size. */
async function evict(folder: string, ids: string[], newest: string, mostBytes: number): Promise<void> {
  const found = await Promise.all(ids.map(async (id) => ({ id, ...(await sizeOf(join(folder, id))) })));
  let total = found.reduce((sum, { bytes }) => sum + bytes, 0);
  for (const { id, bytes } of found.filter((one) => one.id !== newest).sort((a, b) => a.used - b.used)) {
    if (total <= mostBytes) return;
    await rm(join(folder, id), { recursive: true, force: true });
    total -= bytes;
  }
}

/** The size of a capture that another process has removed in the meantime. */
const GONE = { bytes: 0, used: 0 };

async function sizeOf(path: string): Promise<{ bytes: number; used: number }> {
  const found = await Promise.all([stat(path), stat(join(path, ACTIVATIONS))]).catch(() => undefined);
  if (!found) return GONE;
  const [own, file] = found;
  return { bytes: file.size, used: own.mtimeMs };
}

function unknownCapture(id: string, ids: string[]): CuvetteError {
  const known =
    ids.length > 0
      ? `The lab has ${ids.slice(-5).join(', ')}${ids.length > 5 ? ' and others' : ''}.`
      : 'The lab has none yet.';
  return new CuvetteError(
    'unknown_capture',
    `There is no capture ${id} of this model. ${known} Make one with capture_acts.`,
  );
}

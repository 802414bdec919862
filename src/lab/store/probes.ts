/** Stores probes on disk as NAME.json beside NAME.safetensors, which is also the format in which they are exchanged. */

import { readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import * as z from 'zod';
import { CuvetteError } from '../../errors.ts';
import { isIncoming, writeDurably } from '../core/durable-files.ts';
import { whyInvalid } from '../core/json-files.ts';
import { encodeSafetensors, openSafetensors, type TensorToWrite } from '../formats/safetensors.ts';

/** How this lab trained a probe. */
const trainingSchema = z
  .object({
    method: z.enum(['logistic', 'difference-of-means', 'interchange']),
    capture_id: z.string(),
    c: z.number().optional(),
    seed: z.number(),
    split_by: z.string(),
    n_train: z.number(),
    n_held_out: z.number(),
    auroc: z.number().nullable(),
    /** Hashes of the prompts that it was trained on: it is not tested on them, in whatever capture they are. */
    trained_on: z.array(z.string()),
    /** Names or numbers of the classes, where there are more than two. */
    classes: z.array(z.string()).optional(),
    /** Distance of the class means along the direction, in the rows that it has seen; with more than two classes, of those furthest apart. */
    swing: z.number(),
    /** From scores to probabilities: 1 / (1 + exp(-(slope × score + intercept))). With more than two classes there are none. */
    calibration: z.object({ slope: z.number(), intercept: z.number() }).optional(),
  })
  .refine(({ classes, calibration }) => classes !== undefined || calibration !== undefined, {
    path: ['calibration'],
    message: 'a probe between two classes has one',
  });

const fileSchema = z.object({
  model_id: z.string().optional(),
  layer: z.union([z.number(), z.string()]).optional(),
  position: z.union([z.number(), z.string()]).optional(),
  license: z.string().nullish(),
  source_url: z.string().nullish(),
  /** Probes of other programs may have anything in it. */
  training: z.union([trainingSchema, z.record(z.string(), z.unknown())]).nullish(),
});

export type Training = z.infer<typeof trainingSchema>;

export interface Probe {
  id: string;
  modelId: string;
  /** A block's number for the residual stream after it, or a hook point by name. */
  layer: string | number;
  position: string | number;
  license: string | null;
  sourceUrl: string | null;
  direction: Float32Array;
  bias: number;
  /** Orthonormal vectors of a subspace of several dimensions; the direction is a line in it. */
  basis?: Float32Array[];
  /** Of a probe that this lab trained. */
  training?: Training;
  /** The `training` of a probe that another program made. */
  foreignTraining?: Record<string, unknown>;
}

/** A probe as a file has it: the caller must give what is missing. */
export interface ProbeFile {
  modelId?: string;
  layer?: string | number;
  position?: string | number;
  license: string | null;
  sourceUrl: string | null;
  training: Record<string, unknown> | null;
  direction: Float32Array;
  bias: number;
  basis?: Float32Array[];
}

/** The bias of a probe without one: its scores are plain products with the direction. */
export const NO_BIAS = 0;

export interface ProbeStore {
  save(probe: Probe): Promise<void>;
  get(id: string): Promise<Probe>;
  list(): Promise<Probe[]>;
}

export function createProbeStore(folder: string): ProbeStore {
  async function ids(): Promise<string[]> {
    const names = await readdir(folder).catch(() => []);
    return names.filter((name) => name.endsWith('.json') && !isIncoming(name)).map((name) => basename(name, '.json'));
  }

  function read(id: string): Promise<Probe> {
    const about = join(folder, `${id}.json`);
    return readProbeFile(join(folder, `${id}.safetensors`), about).then((file) => fromFile(id, about, file));
  }

  return {
    async save(probe) {
      const shape = [probe.direction.length];
      const tensors = encodeSafetensors({
        direction: { dtype: 'F32', shape, data: probe.direction },
        bias: { dtype: 'F32', shape: [1], data: Float32Array.of(probe.bias) },
        ...(probe.basis && { basis: tensorOf(probe.basis, probe.direction.length) }),
      });
      // The JSON comes last: a probe is there once it is.
      await writeDurably(join(folder, `${probe.id}.safetensors`), tensors);
      await writeDurably(join(folder, `${probe.id}.json`), `${JSON.stringify(toJson(probe), null, 2)}\n`);
    },
    async get(id) {
      const known = await ids();
      if (known.includes(id)) return read(id);
      const some = known.length > 0 ? `The lab has: ${known.sort().slice(0, 20).join(', ')}.` : 'The lab has none yet.';
      throw new CuvetteError(
        'unknown_probe',
        `There is no probe ${id}. ${some} Make one with train_probe or load_probe.`,
      );
    },
    list: async () => Promise.all((await ids()).sort().map(read)),
  };
}

/** Reads the tensors and the JSON beside them. */
export async function readProbeFile(path: string, about: string): Promise<ProbeFile> {
  const tensors = openSafetensors(path);
  try {
    const parsed = fileSchema.parse(JSON.parse(await readFile(about, 'utf8')));
    return {
      ...(parsed.model_id !== undefined && { modelId: parsed.model_id }),
      ...(parsed.layer !== undefined && { layer: parsed.layer }),
      ...(parsed.position !== undefined && { position: parsed.position }),
      license: parsed.license ?? null,
      sourceUrl: parsed.source_url ?? null,
      training: parsed.training ?? null,
      direction: tensors.float32('direction'),
      ...(tensors.tensors.has('basis') && {
        basis: rowsOf(path, tensors.float32('basis'), tensors.float32('direction').length),
      }),
      bias: tensors.tensors.has('bias') ? onlyNumber(path, 'bias', tensors.float32('bias')) : NO_BIAS,
    };
  } catch (error) {
    if (error instanceof CuvetteError) throw error;
    throw new CuvetteError('bad_model', `${about} is not what a probe has beside its tensors: ${whyInvalid(error)}`, {
      cause: error,
    });
  } finally {
    tensors.close();
  }
}

function tensorOf(basis: readonly Float32Array[], width: number): TensorToWrite {
  const data = new Float32Array(basis.length * width);
  for (const [i, vector] of basis.entries()) data.set(vector, i * width);
  return { dtype: 'F32', shape: [basis.length, width], data };
}

/** The rows of a basis, each as wide as the direction. */
function rowsOf(path: string, numbers: Float32Array, width: number): Float32Array[] {
  const count = numbers.length / width;
  if (Number.isInteger(count) && count > 0)
    return Array.from({ length: count }, (_, row) => numbers.slice(row * width, (row + 1) * width));
  throw new CuvetteError(
    'bad_model',
    `basis in ${path} has ${numbers.length} numbers, and the direction ${width}. Each row of the basis must be as long as that.`,
  );
}

/** The number of a tensor that must have one. */
export function onlyNumber(path: string, name: string, numbers: Float32Array): number {
  const [number, ...others] = numbers;
  if (number !== undefined && others.length === 0) return number;
  throw new CuvetteError('bad_model', `${name} in ${path} has ${numbers.length} numbers, and must have one.`);
}

/** Checks that a file of this lab has every field that it writes. */
function fromFile(id: string, about: string, file: ProbeFile): Probe {
  const { modelId, layer, position, license, sourceUrl, direction, bias, basis } = file;
  if (modelId === undefined) throw incomplete(about, 'model_id');
  if (layer === undefined) throw incomplete(about, 'layer');
  if (position === undefined) throw incomplete(about, 'position');
  const vectors = { direction, bias, ...(basis && { basis }) };
  return { id, modelId, layer, position, license, sourceUrl, ...vectors, ...trainingOf(about, file.training) };
}

/** A `training` that a lab wrote must be complete: without the prompts that the probe was trained on, it would be tested on them. */
function trainingOf(about: string, training: ProbeFile['training']): Pick<Probe, 'training' | 'foreignTraining'> {
  if (training === null) return {};
  const own = trainingSchema.safeParse(training);
  if (own.success) return { training: own.data };
  if ('trained_on' in training || 'capture_id' in training) throw incomplete(about, 'training', own.error);
  return { foreignTraining: training };
}

function incomplete(about: string, field: string, error?: z.ZodError): CuvetteError {
  const what = error ? `its ${field} is not whole: ${z.prettifyError(error)}` : `it has no ${field}`;
  return new CuvetteError(
    'bad_model',
    `The probe in ${about} cannot be used: ${what}. Train it again, or load it with load_probe.`,
  );
}

function toJson(probe: Probe): z.infer<typeof fileSchema> {
  return {
    model_id: probe.modelId,
    layer: probe.layer,
    position: probe.position,
    license: probe.license,
    source_url: probe.sourceUrl,
    training: probe.training ?? probe.foreignTraining ?? null,
  };
}

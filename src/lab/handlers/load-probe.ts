/** Answers `load_probe`: takes a direction as numbers, or from a file. */

import { basename } from 'node:path';
import { CuvetteError } from '../../errors.ts';
import type { LabContext } from '../core/lab.ts';
import { hashOfNumbers } from '../core/manifest.ts';
import { missing } from '../core/missing.ts';
import { parsePosition } from '../core/positions.ts';
import { readTorchTensors } from '../formats/torch-file.ts';
import { loadProbe } from '../primitives/train-probe.ts';
import { norm } from '../statistics/vectors.ts';
import { NO_BIAS, onlyNumber, type Probe, type ProbeFile, readProbeFile } from '../store/probes.ts';
import { defineHandler } from './handler.ts';
import { directionWidth, type Layer, layerOf, placeOf } from './layers.ts';
import { type LabResources, recorded } from './resources.ts';
import { showProbe } from './show-probe.ts';

/** The position of a probe where neither the caller nor the file names one. */
const USUAL_POSITION = 'end_question';

export const loadProbeHandler = defineHandler(loadProbe, async (resources, args, context) => {
  if ((args.direction === undefined) === (args.source === undefined))
    throw new CuvetteError('invalid_input', 'Give either direction, as numbers, or source, a file.');
  const file =
    args.source === undefined
      ? asFile(args.direction ?? missing('direction'))
      : await readSource(resources, args.source, context);
  const given = args.layer ?? file.layer;
  if (given === undefined) throw new CuvetteError('invalid_input', 'Which layer is this probe of? Give layer.');
  const layer = layerOf(resources, given);
  const position = args.position ?? file.position ?? USUAL_POSITION;
  parsePosition(position);
  checkDirection(file, resources, layer);
  const probe: Probe = {
    id: args.probe_id,
    modelId: resources.model.id,
    layer: layer.shown,
    position,
    license: args.license ?? file.license,
    sourceUrl: args.source_url ?? file.sourceUrl,
    direction: file.direction,
    bias: args.bias ?? file.bias,
    ...(file.basis && { basis: file.basis }),
    ...(file.training && { foreignTraining: file.training }),
  };
  await resources.store.probes.save(probe);
  const direction = hashOfNumbers(probe.direction);
  const basis = probe.basis?.map(hashOfNumbers);
  const inputs = { direction, bias: probe.bias, ...(basis && { basis }), point: layer.name, position };
  const manifest = await recorded(resources, { tool: loadProbe.name, inputs, outputs: {}, data: null });
  return {
    probe: showProbe(probe),
    norm: norm(probe.direction),
    notes: notesOn(file, resources),
    manifest_sha256: manifest,
  };
});

function asFile(direction: number[]): ProbeFile {
  return { direction: Float32Array.from(direction), bias: NO_BIAS, license: null, sourceUrl: null, training: null };
}

/** `NAME.safetensors` with `NAME.json`, either of them or NAME alone, or `NAME.pt`. */
async function readSource(resources: LabResources, source: string, context: LabContext): Promise<ProbeFile> {
  if (source.endsWith('.pt')) return readTorchProbe(await resources.findFile(source, context));
  const name = source.replace(/\.(json|safetensors)$/, '');
  const tensors = await resources.findFile(`${name}.safetensors`, context);
  return readProbeFile(tensors, await resources.findFile(`${name}.json`, context));
}

/** The names of a probe's direction in .pt files. */
const DIRECTIONS = ['direction', 'weight', 'coef_', ''];
const BIASES = ['bias', 'intercept_'];

function readTorchProbe(path: string): ProbeFile {
  const tensors = readTorchTensors(path);
  const find = (names: string[]) =>
    [...tensors].find(([name]) => names.some((one) => name === one || (one !== '' && name.endsWith(`.${one}`))))?.[1];
  const direction = find(DIRECTIONS);
  if (!direction || direction.shape.some((size) => size !== 1 && size !== direction.data.length))
    throw new CuvetteError(
      'bad_model',
      `${path} has no tensor that is one direction. It has: ${[...tensors].map(([name, { shape }]) => `${name} [${shape.join(', ')}]`).join(', ')}. Name it direction or weight.`,
    );
  const bias = find(BIASES);
  return { ...asFile([]), direction: direction.data, bias: bias ? onlyNumber(path, 'bias', bias.data) : NO_BIAS };
}

function checkDirection({ direction, basis = [] }: ProbeFile, resources: LabResources, layer: Layer): void {
  const width = directionWidth(resources, layer);
  if (direction.length !== width)
    throw new CuvetteError(
      'invalid_input',
      `The probe's direction has ${direction.length} numbers, and ${resources.model.id} is ${width} wide${placeOf(layer)}. It is a probe of another model or place.`,
    );
  if ([direction, ...basis].some((one) => one.some((value) => !Number.isFinite(value)) || norm(one) === 0))
    throw new CuvetteError('invalid_input', "The probe's direction is zero, or has numbers that are not finite.");
}

function notesOn(file: ProbeFile, { model }: LabResources): string[] {
  if (file.modelId === undefined || basename(file.modelId) === basename(model.id)) return [];
  return [`The file says that it is a probe of ${file.modelId}, and the lab has ${model.id}.`];
}

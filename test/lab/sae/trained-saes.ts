/** Opens the trained SAEs of test/lab/fixtures/sae-fit, as they are and as they would be if they were misread: see scripts/lab/make-fit-saes.py. */

import { join } from 'node:path';
import { missing } from '../../../src/lab/core/missing.ts';
import type { Sae, SaeActivation } from '../../../src/lab/core/sae.ts';
import { openSafetensors } from '../../../src/lab/formats/safetensors.ts';
import { elementsOf } from '../../../src/lab/formats/tensor-file.ts';

export const TRAINED_KINDS = ['relu', 'topk', 'normalized', 'batchtopk', 'jumprelu', 'gated'] as const;
export type TrainedKind = (typeof TRAINED_KINDS)[number];

export interface TrainedSaes {
  rows: Float32Array;
  saes: Record<TrainedKind, Sae>;
}

export function openTrainedSaes(name: 'demo' | 'planted'): TrainedSaes {
  const file = openSafetensors(join(import.meta.dirname, '../fixtures/sae-fit', `${name}.safetensors`));
  try {
    const read = (tensor: string) => {
      const numbers = new Float32Array(elementsOf((file.tensors.get(tensor) ?? missing('tensor', tensor)).shape));
      file.into(tensor, numbers);
      return numbers;
    };
    const saes = Object.fromEntries(
      TRAINED_KINDS.map((kind) => [kind, saeOf(kind, (part) => read(`${kind}.${part}`))]),
    );
    return { rows: read('rows'), saes: saes as Record<TrainedKind, Sae> };
  } finally {
    file.close();
  }
}

function saeOf(kind: TrainedKind, read: (part: string) => Float32Array): Sae {
  const decoderBias = read('b_dec');
  const decoder = read('W_dec');
  const width = decoderBias.length;
  const features = decoder.length / width;
  const stored = read('W_enc');
  return {
    id: kind,
    source: 'fixture',
    format: kind,
    width,
    features,
    encoder: Float32Array.from(stored, (_, i) => stored[(i % width) * features + Math.floor(i / width)] ?? Number.NaN),
    encoderBias: kind === 'gated' ? new Float32Array(features) : read('b_enc'),
    decoder,
    decoderBias,
    activation: activationOf(kind, read),
    // Files of this kind say it; see `expectedL0` in the loaders.
    ...(kind === 'batchtopk' ? { expectedL0: read('k')[0] ?? missing('k of', kind) } : {}),
    subtractsDecoderBias: true,
    normalization: kind === 'normalized' ? 'layer-norm' : 'none',
  };
}

function activationOf(kind: TrainedKind, read: (part: string) => Float32Array): SaeActivation {
  if (kind === 'relu') return { kind };
  if (kind === 'gated')
    return { kind, gateBias: read('b_gate'), scale: read('r_mag').map(Math.exp), bias: read('b_mag') };
  if (kind === 'topk' || kind === 'normalized') return { kind: 'topk', k: read('k')[0] ?? missing('k of', kind) };
  return { kind: 'jumprelu', threshold: read('threshold') };
}

/** The ways in which a loader could misread an SAE of this kind: by name, and what they make of it. */
export function misreadings(kind: TrainedKind, sae: Sae): [string, Sae][] {
  const { features, width, activation } = sae;
  const none = new Float32Array(features);
  const always: [string, Sae][] = [
    ['without the decoder bias', { ...sae, decoderBias: new Float32Array(width) }],
    ['with its decoder the wrong way up', { ...sae, decoder: sae.decoder.map((number) => -number) }],
    ['with features twice as large', { ...sae, decoder: sae.decoder.map((number) => number * 2) }],
    ['with features half as large', { ...sae, decoder: sae.decoder.map((number) => number / 2) }],
    ['normalised otherwise', { ...sae, normalization: sae.normalization === 'none' ? 'constant-norm' : 'none' }],
  ];
  const top = (k: number): [string, Sae] => [`as TopK of ${k}`, { ...sae, activation: { kind: 'topk', k } }];
  if (activation.kind === 'gated') {
    // As a ReLU of its gate it cannot be told from one that was trained so: the gate is trained to reconstruct by itself.
    return [
      ...always,
      ['with its gate ignored', { ...sae, activation: { ...activation, gateBias: none.slice().fill(Infinity) } }],
      top(1),
    ];
  }
  const relu: [string, Sae][] = kind === 'relu' ? [] : [['as ReLU', { ...sae, activation: { kind: 'relu' } }]];
  const bare: [string, Sae] = [
    'as ReLU without biases',
    { ...sae, activation: { kind: 'relu' }, encoderBias: none, decoderBias: new Float32Array(width) },
  ];
  const k = activation.kind === 'topk' ? activation.k : 8;
  return [...always, ...relu, bare, top(1), ...(activation.kind === 'topk' ? [top(4 * k)] : [])];
}

/** Makes a small SAE with fixed weights. */

import type { Sae } from '../../../src/lab/core/sae.ts';

export function plainSae(width: number, features: number): Sae {
  return {
    id: 'plain',
    source: 'nowhere',
    format: 'test',
    width,
    features,
    encoder: Float32Array.from({ length: width * features }, (_, i) => Math.sin(i + 1)),
    encoderBias: Float32Array.from({ length: features }, (_, i) => Math.cos(i) / 4),
    decoder: Float32Array.from({ length: width * features }, (_, i) => Math.sin(i + 2)),
    decoderBias: Float32Array.from({ length: width }, (_, i) => Math.cos(i) / 2),
    activation: { kind: 'relu' },
    subtractsDecoderBias: false,
    normalization: 'none',
  };
}

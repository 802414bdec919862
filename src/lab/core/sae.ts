/** Defines a sparse autoencoder or transcoder in the one form that the lab computes with, whatever file it was loaded from. */

import type { HookPoint } from './engine.ts';

export interface Sae {
  id: string;
  /** The file or folder it was read from. */
  source: string;
  /** The format that was recognised, for people to read. */
  format: string;
  /** Of the activations it reads. */
  width: number;
  features: number;
  /** Where its input is taken, as the file says; a name that the lab has no hook point for stays a name. */
  hookName?: string;
  hookPoint?: HookPoint;
  model?: string;
  /** Row-major [features, width]: one row per feature. */
  encoder: Float32Array;
  encoderBias: Float32Array;
  /** Row-major [features, width], or [features, output width] for a transcoder. */
  decoder: Float32Array;
  decoderBias: Float32Array;
  /** Only for a transcoder: what it writes instead of its own input. */
  output?: SaeOutput;
  /** Row-major [output width, width]: a straight path from input to output, beside the features. */
  skip?: Float32Array;
  activation: SaeActivation;
  /** Whether the decoder's bias is taken off the input before it is encoded. */
  subtractsDecoderBias: boolean;
  normalization: SaeNormalization;
  descriptions?: Map<number, string>;
  /** What its loader had to assume, for people to read. */
  notes?: string[];
  /** How many features of a row are active on average, as the file says. */
  expectedL0?: number;
}

export interface SaeOutput {
  /** Of all that it writes: the model's width for each hook point. */
  width: number;
  /** Where that would be, as the file says: one for a transcoder, several for one that writes to many layers. */
  hookNames: string[];
}

/**
 * From `h`, the encoder's product with its bias, to features.
 *
 * - `jumprelu`: `h` where it is above 0 and above the feature's threshold.
 * - `topk`: the `k` largest of those above 0.
 * - `groupmax`: features are in `groups` runs of equal length; of each, the largest if it is above 0.
 * - `gated`: with `p` the product alone, `relu(p × scale + bias)` where `p + gateBias` is above 0. The encoder's bias is not used.
 */
export type SaeActivation =
  | { kind: 'relu' }
  | { kind: 'jumprelu'; threshold: Float32Array }
  | { kind: 'topk'; k: number }
  | { kind: 'groupmax'; groups: number }
  | { kind: 'gated'; gateBias: Float32Array; scale: Float32Array; bias: Float32Array };

/**
 * What is done to a row before it is encoded, and undone after it is decoded.
 *
 * - `constant-norm`: it is made as long as the square root of its width.
 * - `layer-norm`: its mean is taken off, and it is divided by its standard deviation (that of a sample) plus 1e-5.
 */
export type SaeNormalization = 'none' | 'constant-norm' | 'layer-norm';

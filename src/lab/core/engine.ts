/** Defines the engine interface. An engine holds one model open and runs it with taps and interventions; statistics and verdicts are the lab's. */

import type { Sae } from './sae.ts';

/** A hook in a block: the residual stream before or after it, or what attention or MLP add to it. */
export type HookPlace = 'resid_pre' | 'attn_out' | 'mlp_out' | 'resid_post';

export interface HookPoint {
  /** From 0. */
  layer: number;
  place: HookPlace;
}

/** Positions of a prompt's tokens; negative ones count from its end, so that -1 is the last. */
export type Positions = readonly number[] | { from: number };

/**
 * A change of an activation while the model runs. Directions need not have length 1.
 *
 * - `add`: the vector is added.
 * - `set`: the activation becomes the vector.
 * - `project-out`: the component along the direction becomes 0.
 * - `interchange`: the component along the direction is taken from the source, or, for `part: 'rest'`, everything but that component.
 */
export type Intervention = { point: HookPoint; positions: Positions } & (
  | { kind: 'add'; vector: Float32Array }
  | { kind: 'set'; vector: Float32Array }
  | { kind: 'project-out'; direction: Float32Array }
  | { kind: 'interchange'; direction: Float32Array; source: Float32Array; part: 'along' | 'rest' }
);

/** A prompt with interventions. Interventions at one point are applied in order. */
export interface Variant {
  /** Its index in the request's prompts. */
  prompt: number;
  interventions: readonly Intervention[];
}

export interface Tap {
  point: HookPoint;
  positions: Positions;
}

export interface ForwardRequest {
  /** Tokens. What variants of one prompt share is computed once, and cached for later requests. */
  prompts: readonly (readonly number[])[];
  /** By default each prompt once, unmodified. */
  variants?: readonly Variant[];
  /** Activations to read, after interventions at the same point. */
  taps?: readonly Tap[];
  /** All of the vocabulary, or some tokens only, which is much cheaper. */
  logits?: { positions: Positions; tokens?: readonly number[] };
  /** Log-probabilities of the prompt's tokens, and the divergence of predictions from those of the unmodified prompt. */
  surprise?: boolean;
}

export interface VariantResult {
  /** For each tap: positions × width. */
  activations: Float32Array[];
  /** Positions × tokens. */
  logits?: Float32Array;
  surprise?: {
    /** Natural logarithms, for the second token to the last. */
    logProbabilities: Float32Array;
    /** Kullback-Leibler divergence from the unmodified prompt, in nats, at every position. */
    divergences: Float32Array;
  };
}

export interface GenerateRequest {
  prompts: readonly (readonly number[])[];
  /** Positions `{ from }` include generated tokens. */
  variants?: readonly Variant[];
  maxNewTokens: number;
  /** 0, the default, takes the likeliest token. */
  temperature?: number;
  seed?: number;
}

export interface ModelDescription {
  /** As the user named it: a folder, a Hugging Face id, or `demo`. */
  id: string;
  engine: 'embedded' | 'torch';
  /** As in the model's config.json, for example `LlamaForCausalLM`. */
  architecture: string;
  layers: number;
  width: number;
  heads: number;
  vocabulary: number;
  /** Tokens that fit. */
  context: number;
  parameters: number;
  /** What computations are done in. */
  dtype: string;
  device: string;
  /** SHA-256 of the weights and of the tokenizer. */
  weights: string;
  tokenizer: string;
}

export interface Engine {
  describe(): ModelDescription;
  /** As the model's tokenizer does it, with its special tokens unless told otherwise. */
  tokenize(texts: readonly string[], options?: { special?: boolean }): Promise<number[][]>;
  /** The text of tokens; special ones are left out unless asked for. */
  detokenize(tokens: readonly number[], options?: { special?: boolean }): Promise<string>;
  /** In the order of the variants. */
  run(request: ForwardRequest, signal?: AbortSignal): Promise<VariantResult[]>;
  /** The new tokens of each variant, without the one that ended it. */
  generate(request: GenerateRequest, signal?: AbortSignal): Promise<number[][]>;
  /** Activations (count × width) to features (count × features). */
  encodeSae(sae: Sae, rows: Float32Array, signal?: AbortSignal): Promise<Float32Array>;
  close(): Promise<void>;
}

/** What computes for the lab. An engine holds one model open, runs it with taps and interventions, and judges nothing: statistics are the lab's. */

import type { Sae } from './sae.ts';

/** Where in a block: the residual stream before it and after it, and what attention and MLP add to it. */
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

/** One row of a batch: a prompt, and what is changed as it runs. Interventions at one point are made in their order. */
export interface Variant {
  /** Its number among the request's prompts. */
  prompt: number;
  interventions: readonly Intervention[];
}

export interface Tap {
  point: HookPoint;
  positions: Positions;
}

export interface ForwardRequest {
  /** Tokens. Work that variants of one prompt share is done once; the engine keeps it for later requests as long as it has room. */
  prompts: readonly (readonly number[])[];
  /** By default each prompt once, as it is. */
  variants?: readonly Variant[];
  /** What is read, after interventions at the same point. */
  taps?: readonly Tap[];
  /** All of the vocabulary, or some tokens only, which is much cheaper. */
  logits?: { positions: Positions; tokens?: readonly number[] };
  /** How well each next token of the prompt was foreseen, and how far predictions are from those of the prompt as it is. */
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
    /** Kullback-Leibler divergence from the prompt as it is, in nats, at every position. */
    divergences: Float32Array;
  };
}

export interface GenerateRequest {
  prompts: readonly (readonly number[])[];
  /** `{ from }` goes on into what is generated. */
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

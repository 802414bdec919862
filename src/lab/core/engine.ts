/** Defines the engine interface. An engine holds one model open and runs it with taps and interventions; statistics and verdicts are the lab's. */

import type { Sae } from './sae.ts';

/**
 * A hook in a block: the residual stream before or after it, what attention or MLP add to it, or inside attention the outputs of its heads before they are
 * multiplied by W_O (`z`) and the weights that they give to positions (`pattern`).
 */
export type HookPlace = 'resid_pre' | 'pattern' | 'z' | 'attn_out' | 'mlp_out' | 'resid_post';

export interface HookPoint {
  /** From 0. */
  layer: number;
  place: HookPlace;
  /** From 0, of `z` and `pattern`. Without it, `z` is the outputs of all heads side by side; a pattern always has one. With grouped heads, the number of the query's head. */
  head?: number | undefined;
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
 *
 * A row of a pattern has a weight for each token of the prompt. It takes `set` and `add` alone, and must stay a distribution over the tokens up to its
 * own: a request that leaves another is rejected. It cannot be changed from a position on while text is generated.
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
  /** For each tap: positions × the width at its point. */
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

/** Which activations attribution patching scores, for which choice between tokens. */
export interface AttributionRequest {
  prompts: readonly (readonly number[])[];
  /** Two prompts each, by index: counterfactuals of each other. */
  pairs: readonly (readonly [number, number])[];
  /** At all layers; at `z` and `pattern`, for each head. */
  place: HookPlace;
  positions: readonly number[];
  /** The margin is the mean logit of the positive tokens after the prompt less that of the negative ones. */
  target: { positive: readonly number[]; negative: readonly number[] };
}

export interface AttributionResult {
  /**
   * The first-order estimate of how the margin changes when the activation is replaced by that of the other prompt of the pair: the difference times the
   * gradient. For each pair the first prompt and then the second, each layers × heads (1 where there are none) × positions.
   */
  changes: Float32Array;
  /** For each pair the margins of both prompts. */
  margins: Float32Array;
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
  /** Numbers in the output of one head; absent where the heads of a model cannot be told apart. */
  headWidth?: number | undefined;
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
  /** Scores all layers at once by gradients; absent in an engine that computes none. */
  attribute?(request: AttributionRequest, signal?: AbortSignal): Promise<AttributionResult>;
  /** Activations (count × width) to features (count × features). */
  encodeSae(sae: Sae, rows: Float32Array, signal?: AbortSignal): Promise<Float32Array>;
  close(): Promise<void>;
}

/** Defines what an engine must know of a model to compute it, whatever its architecture. */

export interface ModelSpec {
  /** As in config.json, for example `LlamaForCausalLM`. */
  architecture: string;
  layers: number;
  width: number;
  heads: number;
  keyValueHeads: number;
  headWidth: number;
  /** The width of an MLP's inner layer. */
  hidden: number;
  vocabulary: number;
  /** Tokens that fit. */
  context: number;
  norm: 'layer' | 'rms';
  normEpsilon: number;
  positions: LearnedPositions | RotaryPositions;
  /** Of the layers that have a window, where they differ from those of the others. */
  windowPositions?: RotaryPositions | undefined;
  /** The embedding of a token is multiplied by it. */
  embeddingScale: number;
  activation: Activation;
  /** The MLP is down(activation(gate(x)) × up(x)), or else down(activation(up(x))). */
  gated: boolean;
  /** Attention and MLP both read the block's input. */
  parallel: boolean;
  /** Queries and keys pass through a norm of the model's kind before the rotary embedding. */
  queryKeyNorm: QueryKeyNorm | undefined;
  /** For each layer: how many tokens attention sees, the present one included; undefined sees all. */
  window: (number | undefined)[];
  /** Attention scores, and logits, become cap × tanh(value / cap); undefined leaves them. */
  attentionCap?: number | undefined;
  logitCap?: number | undefined;
  /** They end a generation. */
  endTokens: number[];
}

export type Activation = 'gelu' | 'gelu-tanh' | 'silu' | 'relu';

/** Over each head with weights that heads share, over each head with weights of its own, or over all heads at once. */
export type QueryKeyNorm = 'shared' | 'each' | 'whole';

/** Added to the embedding. */
export interface LearnedPositions {
  kind: 'learned';
}

/** Rotary embedding of the first `2 × inverseFrequencies.length` numbers of each head's query and key, the first half of them paired with the second. */
export interface RotaryPositions {
  kind: 'rotary';
  /** Rounded to 32 bits. Angles are position × inverse frequency rounded to 32 bits too, as transformers computes them: far into a text, that is a difference. */
  inverseFrequencies: Float64Array;
  /** Cosines and sines are multiplied by it. */
  scale: number;
  /** A text of more than `beyond` tokens has these frequencies at all of its positions. */
  long?: { beyond: number; inverseFrequencies: Float64Array } | undefined;
}

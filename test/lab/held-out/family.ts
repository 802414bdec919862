/** Defines what a family of models with a known causal structure is, and the question that is asked of each of its models. */

export interface Family {
  name: string;
  truth: { verdict: Verdict; reasons?: string[] };
  /** How the truth follows from the construction. */
  why: string;
  make(seed: number): Made;
}

export type Verdict = 'causal' | 'weak-causal' | 'epiphenomenal-softmax' | 'epiphenomenal-template' | 'undetermined';

export interface Made {
  /** A folder as Hugging Face writes it, by file name. */
  files: ModelFolder;
  question: Question;
}

export type ModelFolder = Record<string, Uint8Array | string>;

export interface Question {
  dataset: Example[];
  /** The residual stream after block `layer`; -1 is the last token. */
  site: { layer: number; position: number };
  target: { positive: string[]; negative: string[] };
  /** `fit` leaves it to the asker to find the direction from the labels. */
  direction: 'fit' | number[];
}

export interface Example {
  prompt: string;
  label: Label;
  pair?: string;
  template?: string;
}

export type Label = 0 | 1;

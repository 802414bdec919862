/** The thresholds of the decision. */

import { ERROR_RATE } from '../statistics/alpha-spending.ts';

/** The smallest natural gap, in logits. With less, the model does not treat the classes differently, and there is no behaviour to cause. */
export const LEAST_GAP = 0.1;

/** Adjusted p values are held against the error rate of all questions of a lab session together. */
export const SIGNIFICANCE = ERROR_RATE;

/** Shares of the behaviour: an effect beyond the first may be present, one within the second is absent. */
export const LEAST_EFFECT = 0.05;
export const EQUIVALENCE = 0.1;

/** What a cause must move: most of the behaviour, by interchange and by ablation; half of it by steering. What moves half of it leaves as much to something else. */
export const MOST = 0.6;
export const HALF = 0.5;
/** What is left of the behaviour where it can be done without. */
export const DISPENSABLE = 0.2;
export const REDUNDANT = 0.25;

/** Of the answers that can flip, the share that must. */
export const LEAST_FLIPS = 0.1;
/** With fewer answers that can flip, a share of them says nothing. */
export const FEWEST_FLIPPABLE = 10;
/** Where so few can flip: the share of other words that may differ between the classes as much as the target words do. */
export const OTHER_WORDS = 0.01;

/** The largest harm, in units of what swapping the whole activation does; below so many nats there is none. */
export const HARM = 2;
export const LEAST_HARM = 0.01;

/** The share of runs whose temperature cannot be told beyond which there is no verdict. */
export const UNTOLD = 0.2;

/** The sweep: a change of logits of at most this is none. */
export const INERT = 0.02;

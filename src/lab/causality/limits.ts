/** What must be reached, or not passed, before a direction can be called causal. */

/** Of the natural gap, in logits. With less, the model does not behave differently, and there is nothing to cause. */
export const LEAST_GAP = 0.1;

/** Share of the direction that lies where activations vary, at least. */
export const ON_MANIFOLD = 0.6;
/** Of neutral text at the dose that carries the claim, at most; the divergence in nats. */
export const PERPLEXITY_RATIO = 1.5;
export const DIVERGENCE = 0.1;

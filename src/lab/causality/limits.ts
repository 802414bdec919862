/** What the guards ask for, where a direction is to be called causal. */

/** Share of the direction that lies where activations vary, at least. */
export const ON_MANIFOLD = 0.6;
/** Of neutral text at the dose that carries the claim, at most; the divergence in nats. */
export const PERPLEXITY_RATIO = 1.5;
export const DIVERGENCE = 0.1;

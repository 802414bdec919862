/** Milliseconds for a whole run of the protocol, on a machine that has much else to do. */
export const PATIENCE = 10 * 60_000;

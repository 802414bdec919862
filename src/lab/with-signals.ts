/** Work that each of several signals can end. They may live long: nothing is left on them once it is done. */
export async function withSignals<T>(
  signals: readonly AbortSignal[],
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const either = new AbortController();
  const done = new AbortController();
  for (const signal of signals) {
    const end = () => either.abort(signal.reason);
    if (signal.aborted) end();
    signal.addEventListener('abort', end, { once: true, signal: done.signal });
  }
  try {
    return await work(either.signal);
  } catch (error) {
    throw either.signal.aborted ? either.signal.reason : error;
  } finally {
    done.abort();
  }
}

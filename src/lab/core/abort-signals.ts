/** Two ways to wait under abort signals that outlive the work: no listener is left on them. */

/** Runs work that each of several signals can abort. */
export async function withAnySignal<T>(
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

/** Waits for work that others wait for, too. An abort rejects at once, and the work goes on. */
export function untilAborted<T>(work: Promise<T>, signal?: AbortSignal): Promise<T> {
  if (!signal) return work;
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}

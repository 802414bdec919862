/** Lets what is done in a session happen one after the other, in the order in which it was asked for. Who cannot wait for long leaves the queue. */

export interface Patience {
  /** Milliseconds. */
  wait: number;
  signal?: AbortSignal | undefined;
  /** The error for who has waited that long. */
  tooLong(): Error;
}

export interface SessionQueue {
  /** Does the work when all before it is done. With patience, it is either begun in time or never. */
  enqueue<T>(work: () => Promise<T>, patience?: Patience): Promise<T>;
}

/** What comes first is `first`. */
export function createSessionQueue(first: Promise<unknown>): SessionQueue {
  let queue = first;

  function append<T>(work: () => Promise<T>): Promise<T> {
    const result = queue.then(work, work);
    queue = result.catch(() => {});
    return result;
  }

  return {
    enqueue(work, patience) {
      if (!patience) return append(work);
      const { wait, signal, tooLong } = patience;
      return new Promise((resolve, reject) => {
        let hasGivenUp = false;
        const giveUp = (error: unknown) => {
          hasGivenUp = true;
          stopWaiting();
          reject(error);
        };
        const onAbort = () => giveUp(signal?.reason);
        const timer = setTimeout(() => giveUp(tooLong()), wait);
        const stopWaiting = () => {
          clearTimeout(timer);
          signal?.removeEventListener('abort', onAbort);
        };
        signal?.addEventListener('abort', onAbort, { once: true });
        if (signal?.aborted) return onAbort();
        append(async () => {
          if (hasGivenUp) return;
          stopWaiting();
          await work().then(resolve, reject);
        });
      });
    },
  };
}

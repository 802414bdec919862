/** Lets what is done in a session happen one after the other, in the order in which it was asked for. Who cannot wait for long gives up its turn. */

export interface Patience {
  /** Milliseconds. */
  wait: number;
  signal?: AbortSignal | undefined;
  /** The error for who has waited that long. */
  tooLong(): Error;
}

export interface Turns {
  /** Does the work when all before it is done. With patience, it is either begun in time or never. */
  take<T>(work: () => Promise<T>, patience?: Patience): Promise<T>;
}

/** The first turn is that of `first`. */
export function createTurns(first: Promise<unknown>): Turns {
  let queue = first;

  function enqueue<T>(work: () => Promise<T>): Promise<T> {
    const result = queue.then(work, work);
    queue = result.catch(() => {});
    return result;
  }

  return {
    take(work, patience) {
      if (!patience) return enqueue(work);
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
        enqueue(async () => {
          if (hasGivenUp) return;
          stopWaiting();
          await work().then(resolve, reject);
        });
      });
    },
  };
}

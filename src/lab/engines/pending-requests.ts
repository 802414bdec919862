/** Waits for the answer to a request that was sent to an engine in a thread or a process of its own. */

export interface PendingRequest<T> {
  resolve(answer: T): void;
  reject(error: unknown): void;
}

/** Until the request is settled in `pending`, which an abort does at once. While one is pending, the channel keeps the program from ending. */
export async function awaitAnswer<T>(
  pending: Map<number, PendingRequest<T>>,
  id: number,
  channel: { ref(): void; unref(): void },
  { send, cancel }: { send(): void; cancel(): void },
  signal?: AbortSignal,
): Promise<T> {
  const abort = () => {
    cancel();
    pending.get(id)?.reject(signal?.reason);
  };
  signal?.addEventListener('abort', abort, { once: true });
  try {
    return await new Promise<T>((resolve, reject) => {
      pending.set(id, { resolve, reject });
      channel.ref();
      send();
    });
  } finally {
    pending.delete(id);
    if (pending.size === 0) channel.unref();
    signal?.removeEventListener('abort', abort);
  }
}

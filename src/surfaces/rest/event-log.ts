/** The events of one execution, numbered, for any number of readers that come, go and come back. */

export interface EventLog {
  add(event: { type: string; [field: string]: unknown }): void;
  end(): void;
  readonly ended: Promise<void>;
  /** Writes all events after that number, those that are there and those to come, then calls back once there are no more. */
  follow(after: number, write: (text: string) => void, onEnd: () => void): () => void;
}

export function createEventLog(key: string): EventLog {
  const written: string[] = [];
  const readers = new Set<{ write: (text: string) => void; onEnd: () => void }>();
  let isEnded = false;
  let resolve: () => void = () => {};
  const ended = new Promise<void>((done) => {
    resolve = done;
  });
  return {
    ended,
    add(event) {
      const text = `id: ${key}.${written.length + 1}\ndata: ${JSON.stringify(event)}\n\n`;
      written.push(text);
      for (const { write } of readers) write(text);
    },
    end() {
      isEnded = true;
      for (const { onEnd } of [...readers]) onEnd();
      readers.clear();
      resolve();
    },
    follow(after, write, onEnd) {
      for (const text of written.slice(after)) write(text);
      const reader = { write, onEnd };
      if (isEnded) queueMicrotask(onEnd);
      else readers.add(reader);
      return () => readers.delete(reader);
    },
  };
}

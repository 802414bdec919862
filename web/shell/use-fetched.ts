/** Fetches what a component shows, again whenever what it depends on changes; what was there stays until the new has come. */

import { type Inputs, useEffect, useState } from 'preact/hooks';

export interface Fetched<T> {
  value: T | undefined;
  problem: string | undefined;
}

export function useFetched<T>(load: (signal: AbortSignal) => Promise<T>, inputs: Inputs): Fetched<T> {
  const [state, setState] = useState<Fetched<T>>({ value: undefined, problem: undefined });
  useEffect(() => {
    const leaving = new AbortController();
    load(leaving.signal)
      .then((value) => setState({ value, problem: undefined }))
      .catch((error: unknown) => {
        if (leaving.signal.aborted) return;
        const problem = error instanceof Error ? error.message : String(error);
        setState(({ value }) => ({ value, problem }));
      });
    return () => leaving.abort();
  }, inputs);
  return state;
}

/** Finds calls by the ids that their clients gave them, so that no call runs twice: an id that comes again joins its call, and one whose call is over is refused. */

import { CuvetteError } from '../errors.ts';

export interface CallIdRequest {
  id: string;
  /** Whose id it is: two callers may choose the same. */
  owner: string;
  /** Of what is asked; not known to who only joins. */
  hash?: string;
  /** Whether the call was sent before: then it is not started. */
  isJoin: boolean;
}

export interface CallIds<Call> {
  /** The call of that id; started if it is not there. */
  find(request: CallIdRequest, start: () => Call): Call;
  /** The call of that id to be stopped. An id that has not come yet is refused when it comes. */
  stop(id: Pick<CallIdRequest, 'id' | 'owner'>): Call;
  /** The call is over, and its id not free again. */
  retire(id: Pick<CallIdRequest, 'id' | 'owner'>): void;
  /** Nothing has run under the id, and it is free again. */
  free(id: Pick<CallIdRequest, 'id' | 'owner'>): void;
}

/** How many ids of calls that are over are known as such. */
const MOST_RETIRED = 20_000;

/** `where`: what knows the calls, in words: a lab, a service. */
export function createCallIds<Call>(where: string, mostRetired = MOST_RETIRED): CallIds<Call> {
  const known = new Map<string, { call: Call; hash: string | undefined }>();
  const retired = new Set<string>();
  const keyOf = ({ owner, id }: { owner: string; id: string }) => JSON.stringify([owner, id]);

  function retire(key: string): void {
    known.delete(key);
    retired.add(key);
    for (const oldest of retired) {
      if (retired.size <= mostRetired) break;
      retired.delete(oldest);
    }
  }

  return {
    find(request, start) {
      const { id, hash, isJoin } = request;
      const key = keyOf(request);
      const found = known.get(key);
      if (found && hash !== undefined && found.hash !== hash)
        throw new CuvetteError(
          'invalid_input',
          `The call ${id} asked for something else, or had other arguments. Give each call an id of its own.`,
        );
      if (retired.has(key))
        throw new CuvetteError(
          'call_over',
          `The call ${id} is over: it was stopped, because nobody listened or somebody said so, or its answer was too long ago. To run it again, give it another id.`,
        );
      if (found) return found.call;
      if (isJoin)
        throw new CuvetteError(
          'unknown_call',
          `This ${where} knows no call ${id}: it was started again since, or the call never came here. Send the call itself.`,
        );
      const call = start();
      known.set(key, { call, hash });
      return call;
    },
    stop(named) {
      const found = known.get(keyOf(named));
      if (found) return found.call;
      retire(keyOf(named));
      throw new CuvetteError(
        'unknown_call',
        `This ${where} knows no call ${named.id}; there is nothing to stop, and it is not run if it comes.`,
      );
    },
    retire: (named) => retire(keyOf(named)),
    free: (named) => void known.delete(keyOf(named)),
  };
}

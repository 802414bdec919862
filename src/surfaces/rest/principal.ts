/** Who calls, once access is settled: what sessions and files belong to. */

import type { FileUser } from '../../files/sharing.ts';

export interface Principal {
  id: string;
  /** What a token says of the organisation of its user. */
  tenant?: string;
  kind: 'open' | 'key' | 'path' | 'jwt';
}

export function userOf({ id, tenant }: Principal): FileUser {
  return { owner: id, tenant };
}

/** What every route finds on its context. */
export interface RestEnv {
  Variables: { principal: Principal };
}

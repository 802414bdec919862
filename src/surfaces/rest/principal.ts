/** Who calls, once access is settled: what sessions and files belong to. */

export interface Principal {
  id: string;
  kind: 'open' | 'key' | 'path' | 'jwt';
}

/** What every route finds on its context. */
export interface RestEnv {
  Variables: { principal: Principal };
}

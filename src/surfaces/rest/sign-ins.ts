/**
 * Keeps who has signed in on the workbench page: by a random id in a cookie, of which only the hash is kept, and the token that opens the
 * page of an open service. Both are in a file, so that open pages go on when the server is started again.
 */

import { createHash, randomBytes } from 'node:crypto';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import * as z from 'zod';
import { privateFolder } from '../../paths.ts';
import type { Principal } from '../caller.ts';

export interface SignIns {
  /** Opens the page of an open service. */
  readonly token: string;
  /** Returns the value of a cookie that stands for this principal. */
  signIn(principal: Principal): string;
  find(cookie: string): Principal | undefined;
  signOut(cookie: string): void;
}

export interface SignInOptions {
  /** Where they are kept; nowhere, if left out. */
  file?: string;
  /** The token, if the operator has chosen one. */
  token?: string | undefined;
  /** What lets callers in: whoever signed in by something else has to do it again. */
  ways: string;
  now?(): number;
}

const HOUR = 3_600_000;
/** Milliseconds: without a request, and in all. */
const IDLE = 24 * HOUR;
const LONGEST = 7 * 24 * HOUR;
const MOST = 1000;
const NOTE_USE_EVERY = HOUR;

const signedIn = z.object({
  hash: z.string(),
  principal: z.object({
    id: z.string(),
    tenant: z.exactOptional(z.string()),
    kind: z.enum(['open', 'key', 'path', 'jwt']),
  }),
  since: z.number(),
  used: z.number(),
});
const kept = z.object({ ways: z.string(), token: z.string(), signedIn: z.array(signedIn) });

export function createSignIns({ file, token: chosen, ways, now = Date.now }: SignInOptions): SignIns {
  const known = file === undefined ? undefined : read(file);
  const fingerprint = sha256(ways);
  const isSame = known?.ways === fingerprint && (chosen === undefined || chosen === known.token);
  const token = chosen ?? known?.token ?? randomBytes(24).toString('base64url');
  const byHash = new Map((isSame ? known.signedIn : []).map((one) => [one.hash, one]));
  write();

  function write(): void {
    if (file === undefined) return;
    privateFolder(dirname(file));
    const content = { ways: fingerprint, token, signedIn: [...byHash.values()] };
    writeFileSync(`${file}.new`, JSON.stringify(content), { mode: 0o600 });
    renameSync(`${file}.new`, file);
  }

  function forgetOld(): void {
    const time = now();
    for (const [hash, { since, used }] of byHash) if (time - used > IDLE || time - since > LONGEST) byHash.delete(hash);
    for (const hash of byHash.keys()) {
      if (byHash.size < MOST) return;
      byHash.delete(hash);
    }
  }

  return {
    token,
    signIn(principal) {
      forgetOld();
      const cookie = randomBytes(32).toString('base64url');
      const hash = sha256(cookie);
      byHash.set(hash, { hash, principal, since: now(), used: now() });
      write();
      return cookie;
    },
    find(cookie) {
      const one = byHash.get(sha256(cookie));
      const time = now();
      if (!one || time - one.used > IDLE || time - one.since > LONGEST) return undefined;
      if (time - one.used > NOTE_USE_EVERY) {
        one.used = time;
        write();
      }
      return one.principal;
    },
    signOut(cookie) {
      if (byHash.delete(sha256(cookie))) write();
    },
  };
}

function read(file: string): z.infer<typeof kept> | undefined {
  try {
    return kept.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    return undefined; // There is none, or it is of another version: people sign in again.
  }
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}

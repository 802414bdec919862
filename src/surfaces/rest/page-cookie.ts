/**
 * Decides whether a request comes from the workbench page: by its cookie, which a browser sends along for other pages of this machine,
 * too, and which therefore counts only where the browser says that the page itself asks.
 */

import type { Context } from 'hono';
import { deleteCookie, getCookie, setCookie } from 'hono/cookie';
import type { Principal, RestEnv } from '../caller.ts';
import type { SignIns } from './sign-ins.ts';

const READING = ['GET', 'HEAD'];

/** Whether a browser sent it; programs never set this header, and pages cannot. */
export function isFromBrowser({ req }: Context): boolean {
  return req.header('sec-fetch-site') !== undefined;
}

/** Who has signed in on the page that asks. `isOwnOrigin`: whether the Origin header names this service. */
export function signedInBy(c: Context<RestEnv>, signIns: SignIns, isOwnOrigin: boolean): Principal | undefined {
  const cookie = getCookie(c, nameFor(c));
  return cookie && isPageItself(c, isOwnOrigin) ? signIns.find(cookie) : undefined;
}

/** Cookies do not tell ports apart: a page of another local server is another origin, and the same site. */
function isPageItself({ req }: Context, isOwnOrigin: boolean): boolean {
  const site = req.header('sec-fetch-site');
  const isReading = READING.includes(req.method);
  if (site !== undefined) return site === 'same-origin' || (site === 'none' && isReading);
  return isOwnOrigin || (isReading && req.header('origin') === undefined);
}

export function signInOn(c: Context<RestEnv>, signIns: SignIns, principal: Principal): void {
  const secure = c.req.header('x-forwarded-proto') === 'https';
  setCookie(c, nameFor(c), signIns.signIn(principal), { httpOnly: true, sameSite: 'Strict', path: '/', secure });
}

export function signOutOn(c: Context<RestEnv>, signIns: SignIns): void {
  const cookie = deleteCookie(c, nameFor(c), { path: '/' });
  if (cookie) signIns.signOut(cookie);
}

/** With the port, so that several services of one machine do not take each other's cookies. */
function nameFor({ req }: Context): string {
  const [, port] = /:(\d+)$/.exec(req.header('host') ?? new URL(req.url).host) ?? [];
  return port === undefined ? 'cuvette' : `cuvette-${port}`;
}

/** Reads and writes where the page is, in the part of its address after `#`, so that a link leads to a session or to one execution. */

import { type Signal, signal } from '@preact/signals';

export type Route =
  | { view: 'home' }
  | { view: 'session'; id: string; execution?: number }
  | { view: 'lab'; page?: string }
  | { view: 'operate' };

export function createRoute(): Signal<Route> {
  const route = signal(parseRoute(location.hash));
  window.addEventListener('hashchange', () => {
    route.value = parseRoute(location.hash);
  });
  return route;
}

export function parseRoute(hash: string): Route {
  const [view, id, rest] = hash.replace(/^#\/?/, '').split('/').map(decoded);
  if (view === 's' && id) {
    const execution = Number(rest);
    return { view: 'session', id, ...(Number.isInteger(execution) && execution > 0 && { execution }) };
  }
  if (view === 'lab') return { view: 'lab', ...(id && { page: id }) };
  if (view === 'operate') return { view: 'operate' };
  return { view: 'home' };
}

export function linkTo(route: Route): string {
  if (route.view === 'session') {
    const at = route.execution === undefined ? '' : `/${route.execution}`;
    return `#/s/${encodeURIComponent(route.id)}${at}`;
  }
  if (route.view === 'lab') return route.page ? `#/lab/${encodeURIComponent(route.page)}` : '#/lab';
  return route.view === 'operate' ? '#/operate' : '#/';
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** What the part of the address after `#` means. */

import { describe, expect, it } from 'vitest';
import { linkTo, parseRoute } from '../../../web/state/route.ts';

describe('a route', () => {
  it.each([
    ['', { view: 'home' }],
    ['#/s/abc', { view: 'session', id: 'abc' }],
    ['#/s/abc/12', { view: 'session', id: 'abc', execution: 12 }],
    ['#/s/a%2Fb/x', { view: 'session', id: 'a/b' }],
    ['#/lab/verdict', { view: 'lab', page: 'verdict' }],
    ['#/operate', { view: 'operate' }],
    ['#/%', { view: 'home' }],
  ])('of %j is read', (hash, route) => {
    expect(parseRoute(hash)).toEqual(route);
  });

  it('comes back from the link that is made of it', () => {
    const route = { view: 'session', id: 'a/b#c', execution: 3 } as const;
    expect(parseRoute(linkTo(route))).toEqual(route);
  });
});

import { expect, test } from 'vitest';
import { nearestName } from '../src/nearest-name.ts';

const KNOWN = ['timeout', 'session', 'code', 'port', 'apiKey'];

test.each([
  ['timout', 'timeout'],
  ['TIMEOUT', 'timeout'],
  ['tiemout', 'timeout'],
  ['sesion', 'session'],
  ['prot', 'port'],
  ['api_key', 'apiKey'],
])('the nearest known name to %s is %s', (given, meant) => {
  expect(nearestName(given, KNOWN)).toBe(meant);
});

test.each(['colour', 'tools', '', 'x', 'timeout_in_seconds'])('no known name is near to %j', (given) => {
  expect(nearestName(given, KNOWN)).toBeUndefined();
});

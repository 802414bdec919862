/** Makes variants of a prompt with one intervention at the site. */

import type { Variant } from '../core/engine.ts';
import { pointOfSite } from '../core/hook-points.ts';
import type { Site } from './readings.ts';

export function addAt(site: Site, prompt: number, vector: Float32Array): Variant {
  return { prompt, interventions: [{ ...at(site), kind: 'add', vector }] };
}

export function setAt(site: Site, prompt: number, vector: Float32Array): Variant {
  return { prompt, interventions: [{ ...at(site), kind: 'set', vector }] };
}

function at(site: Site) {
  return { point: pointOfSite(site), positions: [site.position] };
}

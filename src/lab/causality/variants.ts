/** Makes variants of a prompt with one intervention at the site. */

import type { Intervention, Variant } from '../core/engine.ts';
import { pointOfSite } from '../core/hook-points.ts';
import type { Site } from './readings.ts';

export function addAt(site: Site, prompt: number, vector: Float32Array): Variant {
  return { prompt, interventions: [{ ...at(site), kind: 'add', vector }] };
}

/** Replaces a part of the activation by that of the source: the direction's component, all but it, or all. */
export function takeFrom(
  site: Site,
  prompt: number,
  source: Float32Array,
  part: 'along' | 'rest' | 'all',
  direction: Float32Array,
): Variant {
  const intervention: Intervention =
    part === 'all'
      ? { ...at(site), kind: 'set', vector: source }
      : { ...at(site), kind: 'interchange', direction, source, part };
  return { prompt, interventions: [intervention] };
}

function at(site: Site) {
  return { point: pointOfSite(site), positions: [site.position] };
}

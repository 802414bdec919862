/** Formats a probe for answers: everything but its direction and the prompts that it was trained on. */

import type * as z from 'zod';
import type { shownProbe } from '../primitives/fields.ts';
import type { Probe } from '../store/probes.ts';

export function showProbe(probe: Probe): z.output<typeof shownProbe> {
  const { trained_on: _, ...training } = probe.training ?? { trained_on: [] };
  return {
    id: probe.id,
    model_id: probe.modelId,
    layer: probe.layer,
    position: probe.position,
    license: probe.license,
    source_url: probe.sourceUrl,
    ...(probe.basis && { rank: probe.basis.length }),
    training: probe.training ? training : (probe.foreignTraining ?? null),
  };
}

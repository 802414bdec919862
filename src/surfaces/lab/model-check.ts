/** Rejects requests whose model hash differs from that of the lab's model: captures and probes of one model say nothing of another. */

import { CuvetteError } from '../../errors.ts';
import type { Lab } from '../../lab/core/lab.ts';

export type ModelCheck = (weights: string | undefined) => Promise<void>;

export function createModelCheck(lab: Lab): ModelCheck {
  let asked: Promise<Record<string, unknown>> | undefined;
  const health = () => {
    // A lab has one model for as long as it is open, so it is asked once, unless it could not tell.
    asked ??= lab
      .call('colab_status', {}, { signal: new AbortController().signal, progress: () => {} })
      .catch((error: unknown) => {
        asked = undefined;
        throw error;
      });
    return asked;
  };
  return async (weights) => {
    if (weights === undefined) return;
    const { weights_sha256, model_id } = await health();
    if (weights_sha256 === weights) return;
    throw new CuvetteError(
      'lab_changed',
      `The lab has another model now (${String(model_id)}), so its captures and probes are others too. Call colab_attach to use it all the same.`,
    );
  };
}

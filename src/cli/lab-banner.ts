/** Writes what `cuvette lab serve` prints: the model, and how an agent attaches it. The token is shown here, once, and nowhere else. */

import type { Lab } from '../lab/core/lab.ts';
import { VERSION } from '../version.ts';
import type { LabToken } from './lab-token.ts';

export interface Welcome {
  /** The URL that agents use. */
  endpoint: string;
  /** The URL that it listens on, where that is another. */
  listens: string | undefined;
  token: LabToken;
}

export async function welcome(lab: Lab, { endpoint, listens, token }: Welcome, signal: AbortSignal): Promise<string> {
  const health = await lab.call('colab_status', {}, { signal, progress: () => {} });
  const shape = `${health.architecture}, ${health.layers} layers of width ${health.d_model}, ${health.dtype} on ${health.device}`;
  const beside =
    health.engine === 'torch'
      ? 'execute(interpreter="colab") runs Python beside it, where model, tokenizer and captures are variables.\n'
      : '';
  const tunnel = listens === undefined ? '' : ` (a tunnel to ${listens}; it may take some seconds until it is known)`;
  return `Cuvette ${VERSION} lab · ${health.model_id} (${shape})
Endpoint: ${endpoint}${tunnel}
${token.source === undefined ? `Token:    ${token.token}\n` : ''}
${attachLine(endpoint, token.source ?? token.token)}
then capture_acts, train_probe, probe_eval, steer, sae_lookup, sweep, causality_protocol.
${beside}
Ctrl-C stops it.
`;
}

/** Tells that the address has changed. */
export function moved(endpoint: string, { source }: LabToken): string {
  return `The lab has a new address.
Endpoint: ${endpoint}
${attachLine(endpoint, source ?? 'the same as before')}
`;
}

function attachLine(endpoint: string, token: string): string {
  return `In the agent:  colab_attach(endpoint="${endpoint}", token="${token}")`;
}

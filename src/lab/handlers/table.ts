/** Lists the handlers of all primitives. */

import { captureActsHandler } from './capture-acts.ts';
import { causalityProtocolHandler } from './causality-protocol.ts';
import { CODE_HANDLERS } from './code.ts';
import type { Handler } from './handler.ts';
import { listManifestsHandler, listProbesHandler, statusHandler } from './lab-status.ts';
import { loadProbeHandler } from './load-probe.ts';
import { patchMapHandler } from './patch-map.ts';
import { probeEvalHandler } from './probe-eval.ts';
import { saeLookupHandler } from './sae-lookup.ts';
import { steerHandler } from './steer.ts';
import { sweepHandler } from './sweep.ts';
import { trainProbeHandler } from './train-probe.ts';

export const HANDLERS: readonly Handler[] = [
  statusHandler,
  captureActsHandler,
  trainProbeHandler,
  loadProbeHandler,
  listProbesHandler,
  probeEvalHandler,
  steerHandler,
  saeLookupHandler,
  patchMapHandler,
  sweepHandler,
  causalityProtocolHandler,
  listManifestsHandler,
  ...CODE_HANDLERS,
];

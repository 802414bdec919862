/** Lists the primitives of the lab, in the order in which tools show them. */

import { captureActs } from './capture-acts.ts';
import { causalityProtocol } from './causality-protocol.ts';
import { describeCode, interruptCode, listVariables, resetCode, runCode } from './code.ts';
import { listManifests, listProbes, status } from './lab-status.ts';
import { patchMap } from './patch-map.ts';
import type { Primitive } from './primitive.ts';
import { probeEval } from './probe-eval.ts';
import { saeLookup } from './sae-lookup.ts';
import { steer } from './steer.ts';
import { sweep } from './sweep.ts';
import { loadProbe, trainProbe } from './train-probe.ts';

export const PRIMITIVES: readonly Primitive[] = [
  status,
  captureActs,
  trainProbe,
  loadProbe,
  listProbes,
  probeEval,
  steer,
  saeLookup,
  patchMap,
  sweep,
  causalityProtocol,
  listManifests,
];

/** What a lab answers over HTTP: the primitives, and code. */
export const ROUTED: readonly Primitive[] = [
  ...PRIMITIVES,
  runCode,
  interruptCode,
  describeCode,
  listVariables,
  resetCode,
];

/** The lab as a library, in one bundle: what the repository's own scripts and measurements use. */

export { createZygotes } from '../interpreters/python/zygotes.ts';
export { decide } from './causality/decide.ts';
export { runProtocol } from './causality/protocol.ts';
export { agreementPairs, neutralPrompts } from './demo/datasets.ts';
export { createEmbeddedEngine } from './engines/embedded/embedded-engine.ts';
export { createTorchEngine } from './engines/torch/torch-engine.ts';
export { askQuestion } from './experiments.ts';
export { CLOSE, disagreements, HASH } from './ground-truth/agreement.ts';
export { askEngine, runGroundTruth } from './ground-truth/suite.ts';
export { writeRandomTwin } from './ground-truth/twin.ts';
export { openLabThread } from './lab-thread.ts';
export { createLabs } from './labs.ts';
export { openModelFolder } from './models/open-model.ts';

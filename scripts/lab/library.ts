/** The lab as a library, in one bundle: what the repository's own scripts and measurements use. */

export { createZygotes } from '../../src/interpreters/python/zygotes.ts';
export { decide } from '../../src/lab/causality/decide.ts';
export { runProtocol } from '../../src/lab/causality/protocol.ts';
export { agreementPairs, neutralPrompts } from '../../src/lab/demo/datasets.ts';
export { askQuestion } from '../../src/lab/demo/experiments.ts';
export { createEmbeddedEngine } from '../../src/lab/engines/embedded/embedded-engine.ts';
export { createTorchEngine } from '../../src/lab/engines/torch/torch-engine.ts';
export { createLabs } from '../../src/lab/labs/labs.ts';
export { openLabThread } from '../../src/lab/local/lab-thread.ts';
export { openModelFolder } from '../../src/lab/models/open-model.ts';
export { concludeSweep } from '../../src/lab/site-sweep/conclude.ts';
export { runSweep } from '../../src/lab/site-sweep/run-sweep.ts';
export { CLOSE, disagreements, HASH } from '../../test/lab/ground-truth/agreement.ts';
export {
  EFFECT_SIZES,
  PAIR_COUNTS,
  powerFamily,
  VOLUMES,
  volumeFamilies,
} from '../../test/lab/ground-truth/curves.ts';
export { twinFamilies } from '../../test/lab/ground-truth/families/twins.ts';
export { FAMILIES, familyOf } from '../../test/lab/ground-truth/families.ts';
export { fittedOnInterchange } from '../../test/lab/ground-truth/fitted.ts';
export { asFamily } from '../../test/lab/ground-truth/held-out.ts';
export { tellLayerStory } from '../../test/lab/ground-truth/layer-story.ts';
export { writeRandomTwin } from '../../test/lab/ground-truth/models/twin.ts';
export { askEngine, runFamilies } from '../../test/lab/ground-truth/suite.ts';
export { falsePositives, tally } from '../../test/lab/ground-truth/tally.ts';

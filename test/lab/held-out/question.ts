/** Asks of a scene whether a site is used for its targets. */

import type { Named } from './blueprint.ts';
import type { Example, Made } from './family.ts';
import type { Scene } from './scene.ts';

/** Without a direction, it is to be fitted. */
export function question(scene: Scene, dataset: Example[], layer: number, position = -1, direction?: Named): Made {
  const { positive, negative } = scene.lexicon.targets;
  return {
    files: scene.files,
    question: {
      dataset,
      site: { layer, position },
      target: { positive: [...positive], negative: [...negative] },
      direction: direction ? scene.direction(direction) : 'fit',
    },
  };
}

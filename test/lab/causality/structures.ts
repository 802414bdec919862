/** Structures of known truth: classes on a plane, and a concept of two dimensions of which the context tells the one that is read. */

import type { Random } from '../../../src/lab/statistics/random.ts';
import type { Structure } from './structured-engine.ts';

function radius(random: Random): number {
  return 1.5 + random.uniform();
}

function angleOf(label: number, classes: number): number {
  return (2 * Math.PI * label) / classes;
}

/** Classes lie around a circle in x and y, and less exactly in u and v, which nothing is read from. Answers are read from x and y. */
export function classesOnPlane(classes: number): Structure {
  return {
    classes,
    carries(label, _, random) {
      const [read, unread] = [radius(random), radius(random)];
      const angle = angleOf(label, classes);
      const vague = angle + 0.4 * random.normal();
      return {
        x: read * Math.cos(angle),
        y: read * Math.sin(angle),
        u: unread * Math.cos(vague),
        v: unread * Math.sin(vague),
      };
    },
    answers: (at) =>
      Array.from({ length: classes }, (_, label) => {
        const angle = angleOf(label, classes);
        return 2 * (at('x') * Math.cos(angle) + at('y') * Math.sin(angle));
      }),
  };
}

/**
 * In one context the concept is read from x, in the other from y, up to a ceiling; what a word has on the other axis speaks a little against its class. The
 * class means lie apart along both alike, so that the line between them leaves four tenths of what is read where it was; the plane takes all along.
 */
export const EITHER_AXIS: Structure = {
  classes: 2,
  carries(label, context, random) {
    const sign = label === 1 ? 1 : -1;
    const [read, other] = [sign * radius(random), -0.2 * sign * radius(random)];
    return context < 0 ? { x: read, y: other } : { x: other, y: read };
  },
  answers(at) {
    const read = Math.max(-1, Math.min(1, at('context') < 0 ? at('x') : at('y')));
    return [-3 * read, 3 * read];
  },
};

/** The answer passes by the site; x tells the class there, and is not read; a pathway reads an axis on which natural activations have next to nothing. */
export const DORMANT: Structure = {
  classes: 2,
  carries(label, _, random) {
    return { x: (label === 1 ? 1 : -1) * radius(random), dormant: 0.03 * random.normal() };
  },
  answers(at, label) {
    const read = (label === 1 ? 1 : -1) + 4 * at('dormant');
    return [-2 * read, 2 * read];
  },
};

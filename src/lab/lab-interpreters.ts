/** The Pythons of attached labs by the names under which sessions know them: `colab`, and `colab:NAME` for a named lab session. */

import type { LabInterpreters } from '../sessions/interpreter-catalog.ts';
import { DEFAULT, type Labs } from './labs.ts';

const NAME = /^colab(?::(.+))?$/;

export function createLabInterpreters(labs: Labs): LabInterpreters {
  return {
    isName: (name) => NAME.test(name),
    async open(name) {
      const { openLabInterpreter } = await import('./lab-interpreter.ts');
      const session = NAME.exec(name)?.[1] ?? DEFAULT;
      return openLabInterpreter((primitive, args, context) => labs.call(session, primitive, args, context));
    },
    async list() {
      return (await labs.attached()).map(({ name, endpoint }) => ({
        name: name === DEFAULT ? 'colab' : `colab:${name}`,
        description: `Python of the lab at ${endpoint}`,
      }));
    },
  };
}

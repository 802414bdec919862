/** Names the interpreters of attached labs for sessions: `colab`, and `colab:NAME` for a named lab session. */

import { DEFAULT, type Labs } from './labs.ts';

const NAME = /^colab(?::(.+))?$/;

export function createLabInterpreters(labs: Labs) {
  return {
    isName: (name: string) => NAME.test(name),
    async open(name: string) {
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

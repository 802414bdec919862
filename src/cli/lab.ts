/** `cuvette lab` dispatches to `lab demo` and `lab serve`, and loads only the one that is needed. */

import { CuvetteError } from '../errors.ts';

const COMMANDS: Record<string, () => Promise<{ main(args: string[]): Promise<number | undefined> }>> = {
  demo: () => import('./lab-demo.ts'),
  serve: () => import('./lab-serve.ts'),
};

export async function main([name = '', ...args]: string[]): Promise<number | undefined> {
  const load = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (load) return (await load()).main(args);
  const which = name === '' ? 'Which command?' : `There is no command lab ${name}.`;
  throw new CuvetteError(
    'invalid_input',
    `${which} cuvette lab demo shows what the lab does, in half a minute; cuvette lab serve --model MODEL serves a model to an agent. Run: cuvette help`,
  );
}

/** Makes ready, once, what all the tests of the built program share: the build, the managed Python environment, and the tools that check results. */

import type { TestProject } from 'vitest/node';
import { cacheHome, prepareBuild, prepareEnvironment, prepareGo, prepareLanguages, prepareTools } from './prepare.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** XDG_CACHE_HOME of all tests: the managed environment is in it. */
    cacheHome: string;
    /** The Python of the managed environment. */
    managedPython: string;
    /** A virtual environment with nbformat and uv. */
    tools: string;
  }
}

export default async function setup({ provide }: TestProject): Promise<void> {
  const say = (message: string) => void process.stderr.write(`${message}\n`);
  await prepareBuild(say);
  provide('cacheHome', cacheHome());
  provide('managedPython', await prepareEnvironment(say));
  provide('tools', await prepareTools(say));
  await prepareGo(say);
  await prepareLanguages(say);
}

/** Makes ready what the page's tests share: the build, and the managed Python environment for those that run the real service. */

import type { TestProject } from 'vitest/node';
import type {} from '../global-setup.ts';
import { cacheHome, prepareBuild, prepareEnvironment } from '../prepare.ts';

export default async function setup({ provide }: TestProject): Promise<void> {
  const say = (message: string) => void process.stderr.write(`${message}\n`);
  await prepareBuild(say);
  provide('cacheHome', cacheHome());
  provide('managedPython', await prepareEnvironment(say));
}

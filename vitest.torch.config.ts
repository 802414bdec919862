import { defineConfig } from 'vitest/config';

/** The torch engine, in a Python with torch: the one that CUVETTE_TORCH_PYTHON names, or one that is made for the tests. Needs the build. */
export default defineConfig({
  test: {
    include: ['test/lab/engines/torch/**/*.test.ts'],
    globalSetup: ['test/lab/engines/torch/global-setup.ts'],
    pool: 'forks',
    maxWorkers: 1,
    testTimeout: 300_000,
    hookTimeout: 120_000,
    reporters: ['default'],
  },
});

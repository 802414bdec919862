import { defineConfig } from 'vitest/config';

/** Attacks on the real service, one file after the other: each loads the machine to its limits. */
export default defineConfig({
  test: {
    include: ['test/attack/**/*.test.ts'],
    globalSetup: ['test/global-setup.ts'],
    pool: 'forks',
    fileParallelism: false,
    testTimeout: 180_000,
    hookTimeout: 120_000,
    reporters: ['default'],
  },
});

import { defineConfig } from 'vitest/config';

/** Attacks on the real service: they load the machine to its limits, and wait for time-outs. */
export default defineConfig({
  test: {
    include: ['test/attack/**/*.test.ts'],
    globalSetup: ['test/global-setup.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 180_000,
    hookTimeout: 120_000,
    reporters: ['default'],
  },
});

import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // They load the machine to its limits, and have a command of their own: npm run test:attack.
    exclude: ['test/attack/**', 'test/lab/engines/torch/**'],
    globalSetup: ['test/global-setup.ts'],
    // Every file is an agent of its own: its process is what servers take for theirs.
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    reporters: ['default'],
  },
});

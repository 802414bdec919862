/** Which project of vitest a test file belongs to. */

import { describe, expect, it } from 'vitest';
import { sortTests } from './projects.ts';

const sorted = sortTests();

describe('the project of a test file', () => {
  it.each([
    ['test/paths.test.ts', 'unit'],
    ['test/lab/statistics/random.test.ts', 'unit'],
    ['test/lab/causality/decide.test.ts', 'unit'],
    ['test/lab/causality/protocol.test.ts', 'lab'],
    ['test/e2e/run.test.ts', 'live'],
    ['test/interpreters/process/bash.test.ts', 'live'],
    ['test/e2e/lab/demo.test.ts', 'lab'],
    ['test/lab/ground-truth/suite.test.ts', 'lab'],
    ['test/lab/labs/callers-labs.test.ts', 'lab'],
    ['test/lab/engines/torch/parity.test.ts', 'torch'],
    ['test/attack/isolation.test.ts', 'attack'],
    ['test/attack/soak.test.ts', 'soak'],
    ['test/web/session.test.ts', 'browser'],
    ['test/web/terminal/terminal.test.ts', 'unit'],
  ])('of %s is %s', (file, project) => {
    expect(sorted.get(file)).toBe(project);
  });

  it('is not unit where a helper of the tests starts a server', () => {
    // It imports run-plan.ts, which starts interpreters, and nothing of that kind itself.
    expect(sorted.get('test/interpreters/process/go.test.ts')).toBe('live');
  });
});

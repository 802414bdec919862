/** Sets off fork bombs of large processes under the default limits: each bomb must end for exceeding its limit, while other callers go on. */

import { expect, test } from 'vitest';
import { HANGS_AFTER } from '../e2e/harness.ts';
import { expectLimit, freshName, useConfined } from './attack.ts';

const { attack, expectNextCallWorks } = await useConfined({
  env: { CUVETTE_SESSION_PROCESSES: undefined, CUVETTE_SESSION_MEMORY: undefined },
});

const BOMB = 'import os\nwhile True:\n    try: os.fork()\n    except BaseException: pass';
const expected = { reason: 'too-many-processes', limit: /processes and threads, 256/ };

/** A race shows only now and then. */
const TIMES = process.env.CI ? [1, 2, 3] : [1];

test.each(TIMES)('a fork bomb that swallows its errors is ended and leaves the next call working (%d)', async () => {
  const entity_id = freshName();
  expectLimit(await attack('py', `import numpy, pandas\n${BOMB}`, { entity_id, timeout: HANGS_AFTER }), expected);
  await expectNextCallWorks(entity_id);
});

test('a fork bomb that a call leaves behind is ended and leaves its session working', async () => {
  const entity_id = freshName();
  const left = `import os, time\nif os.fork() == 0:\n    while True:\n        try: os.fork()\n        except BaseException: pass\ntime.sleep(0.2)`;
  const { run } = await attack('py', left, { entity_id });
  expect([null, 'too-many-processes']).toContain(run.reason);
  await expectNextCallWorks(entity_id);
});

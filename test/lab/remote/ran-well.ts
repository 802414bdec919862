/** What a service tells of an execution that ended well. */

import type { EndedRun } from '../../../src/interpreters/execution-events.ts';

export const RAN_WELL: EndedRun = {
  outcome: 'ok',
  code: 0,
  signal: null,
  reason: null,
  rung: null,
  variables_survived: true,
  message: null,
  notes: [],
  ended_processes: ['sleep 60'],
  memory: 1000,
  cpu_time: 500,
  wall_time: 1500,
};

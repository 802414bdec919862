/** An execution's record as it stands after `1 + 1`, but for what a test says otherwise. */

import type { ExecutionRecord } from '../../src/sessions/execution-record.ts';

export function makeRecord(different: Partial<ExecutionRecord> = {}): ExecutionRecord {
  return {
    session: 'session-1',
    number: 1,
    interpreter: 'builtin',
    origin: 'agent',
    code: '1 + 1',
    state: 'done',
    outcome: 'ok',
    reason: null,
    exitCode: 0,
    timeout: 300,
    startedAt: 1_700_000_000_000,
    wall: 0.01,
    cpu: 0.01,
    peak: 1_000_000,
    variablesSurvived: true,
    ended: [],
    installed: [],
    outputs: [{ type: 'result', data: { 'text/plain': '2' }, metadata: {} }],
    text: '2\n',
    textLength: 2,
    outputFile: null,
    outputBytes: 0,
    notes: [],
    ...different,
  };
}

import { describe, expect, it, onTestFinished } from 'vitest';
import { openSpills } from '../../../src/files/spill.ts';
import type { LogLimits } from '../../../src/surfaces/event-logs.ts';
import { jsonBody } from '../../../src/surfaces/json-answer.ts';
import { createStreamLogs, type StreamLogs } from '../../../src/surfaces/rest/stream-logs.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

async function makeLogs(limits: Partial<LogLimits> = {}): Promise<StreamLogs> {
  const logs = createStreamLogs(await openSpills(temporaryFolder()), limits);
  onTestFinished(() => logs.close());
  return logs;
}

async function endOne(logs: StreamLogs, session: string, text = ''): Promise<void> {
  const log = logs.begin(session, 1, 'me');
  await log.add(JSON.stringify({ text }));
  log.end(jsonBody({}));
}

const kept = (logs: StreamLogs, sessions: string[]) => sessions.filter((id) => logs.find(id, 1, 'me') !== undefined);

describe('the log of a streamed execution', () => {
  it('is found by its owner alone', async () => {
    const logs = await makeLogs();
    await endOne(logs, 'a');
    expect([logs.find('a', 1, 'me') !== undefined, logs.find('a', 1, 'you'), logs.find('a', 2, 'me')]).toEqual([
      true,
      undefined,
      undefined,
    ]);
  });

  it('goes with its session', async () => {
    const logs = await makeLogs();
    for (const id of ['a', 'b']) await endOne(logs, id);
    logs.removeSession('a');
    expect(kept(logs, ['a', 'b'])).toEqual(['b']);
  });

  it('goes some time after its end, and not before', async () => {
    const logs = await makeLogs({ keep: 30 });
    const running = logs.begin('running', 1, 'me');
    await endOne(logs, 'ended');
    await expect.poll(() => kept(logs, ['running', 'ended'])).toEqual(['running']);
    running.end(jsonBody({}));
    await expect.poll(() => kept(logs, ['running'])).toEqual([]);
  });
});

describe('of the logs of ended streams, the oldest go', () => {
  const sessions = ['a', 'b', 'c'];

  it('when there are too many', async () => {
    const logs = await makeLogs({ most: 2 });
    for (const id of sessions) await endOne(logs, id);
    expect(kept(logs, sessions)).toEqual(['b', 'c']);
  });

  it('when too many of them are on the disk', async () => {
    const logs = await makeLogs({ mostFiles: 1 });
    for (const id of sessions) await endOne(logs, id, 'x'.repeat(300_000));
    expect(kept(logs, sessions)).toEqual(['c']);
  });

  it('when they are too large together; the latest stays, however large', async () => {
    const logs = await makeLogs({ mostBytes: 450_000 });
    for (const id of sessions) await endOne(logs, id, 'x'.repeat(300_000));
    expect(kept(logs, sessions)).toEqual(['c']);
    await endOne(logs, 'd', 'x'.repeat(1_000_000));
    expect(kept(logs, [...sessions, 'd'])).toEqual(['d']);
  });
});

import { createServer as createHttp } from 'node:http';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { readConfig } from '../../../src/config.ts';
import { createSessions } from '../../../src/sessions/sessions.ts';
import { openBridgeConnection } from '../../../src/surfaces/bridge/connection.ts';
import { streamExecution } from '../../../src/surfaces/bridge/execution-stream.ts';
import { fakeResources, fakeZygotes, until } from '../../sessions/fake-keepers.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

const PIECE = 'x'.repeat(64_000);

/** A server of the bridge in this process, and a client that has asked it to run code and reads nothing. */
async function runForIdleReader() {
  const root = temporaryFolder();
  const zygotes = fakeZygotes();
  const resources = fakeResources(root, zygotes);
  const sessions = createSessions({ config: readConfig({}, {}), paths: resources.paths, project: root, resources });
  let server: Socket | undefined;
  const listening = createServer((socket) => {
    server = socket;
    openBridgeConnection(
      socket,
      {
        http: createHttp(),
        line: (_line, write, { gone }) => streamExecution(sessions, { code: '', signal: gone }, write),
      },
      { mostBytes: 1000, deadline: 1000 },
    );
  });
  const path = join(root, 'sock');
  await new Promise<void>((resolve) => listening.listen(path, resolve));
  const client = connect(path);
  onTestFinished(() => {
    client.destroy();
    listening.close();
  });
  client.write('{}\n');
  client.pause();
  await until(() => zygotes.keepers.length > 0 && zygotes.last().executed.length === 1);
  return { keeper: zygotes.last(), client, buffered: () => server?.writableLength ?? 0 };
}

test('code whose reader has stopped reading is not acknowledged further, and goes on when the reader does', async () => {
  const { keeper, client, buffered } = await runForIdleReader();
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  // As a keeper does, the test prints only while little is not acknowledged.
  let sent = 0;
  const window = 4;
  for (let turns = 0; turns < 2000; turns += 1) {
    if (sent - (keeper.acknowledged.at(-1) ?? 0) < window) {
      keeper.print(PIECE);
      sent += 1;
    }
    vi.advanceTimersByTime(1000);
    await new Promise((resolve) => setImmediate(resolve));
  }
  const stalledAt = sent;
  expect(stalledAt - (keeper.acknowledged.at(-1) ?? 0)).toBe(window);
  expect(buffered()).toBeLessThan((window + 1) * 2 * PIECE.length);
  let received = 0;
  client.on('data', (chunk) => {
    received += chunk.length;
  });
  client.resume();
  await until(() => {
    vi.advanceTimersByTime(1000);
    return keeper.acknowledged.at(-1) === stalledAt;
  });
  keeper.finish();
  await until(() => received > stalledAt * PIECE.length);
});

test('a reader that goes away interrupts its code', async () => {
  const { keeper, client } = await runForIdleReader();
  keeper.print(PIECE.repeat(10));
  client.destroy();
  await until(() => keeper.interrupted.length === 1);
});

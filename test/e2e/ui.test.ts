/** `cuvette ui` shows the agent's own session, by a process of its own, whoever works in it and whatever becomes of the agent's server. */

import { describe, expect, test } from 'vitest';
import { runCli, runOutside, startAgent, startCli, useHome, waitFor } from './harness.ts';
import { createCaller } from './http/service.ts';
import { isDone, textTold, told } from './watching.ts';

const home = useHome();

async function startUi(cwd: string) {
  const ui = startCli(['ui', '--port', '0'], { home, cwd });
  const [, url = '', token = ''] = await waitFor('the page is served', () => {
    if (ui.child.exitCode !== null) throw new Error(`It ended: ${ui.stderr()}`);
    return /^Workbench: (http:\/\/127\.0\.0\.1:\d+)\/\?token=(\S+)\n/.exec(ui.stdout()) ?? undefined;
  });
  const anybody = createCaller(url);
  const answer = await anybody.get(`/?token=${token}`, { accept: 'text/html' });
  const cookie = answer.headers['set-cookie']?.[0]?.split(';')[0] ?? '';
  const headers = { cookie, 'sec-fetch-site': 'same-origin', 'x-cuvette-origin': 'page' };
  return { ui, anybody, page: createCaller(url, '', headers), token };
}

async function stop({ ui }: Awaited<ReturnType<typeof startUi>>): Promise<void> {
  ui.child.kill('SIGINT');
  expect((await ui.done).code).toBe(0);
}

describe('the page of an agent', () => {
  test('shows what the agent, a shell and the page run in one session, and goes on with the next server', async () => {
    const cwd = home.project();
    const agent = await startAgent({ home, cwd });
    await agent.execute('x = 20');
    const served = await startUi(cwd);
    const { page } = served;
    const events = await page.watch('/sessions/default/events');
    expect(await told(events, ({ type }) => type === 'snapshot')).toMatchObject({
      session: { is_default: true, is_live: true },
      executions: [{ number: 1, origin: 'agent' }],
    });
    await agent.execute('print(x + 1)');
    await runCli(['run', '-c', 'print(x + 2)'], { home, cwd });
    expect((await page.post('/sessions/default/executions', { code: 'print(x + 3)' })).status).toBe(202);
    for (const [number, origin] of [
      [2, 'agent'],
      [3, 'shell'],
      [4, 'page'],
    ] as const) {
      expect((await told(events, isDone(number))).execution).toMatchObject({ origin, outcome: 'ok' });
      expect(textTold(events, number)).toBe(`${19 + number}\n`);
    }

    await agent.kill();
    await events.ended;
    expect((await page.get('/sessions')).status).toBe(503);
    const again = await startAgent({ home, cwd });
    const after = await waitFor('the next server is found', async () => {
      const stream = await page.watch(`/sessions/default/events?after=${events.events.at(-1)?.eventId}`);
      return stream.status === 200 && stream;
    });
    expect((await told(after, ({ type }) => type === 'snapshot')).executions).toHaveLength(4);
    await again.execute('print(x)');
    await told(after, isDone(5));
    expect(textTold(after, 5)).toBe('20\n');
    await stop(served);
    await after.ended;
    await again.close();
  });

  test('is closed to whoever has no token, also to programs', async () => {
    const cwd = home.project();
    const agent = await startAgent({ home, cwd });
    const served = await startUi(cwd);
    const { anybody, token } = served;
    expect((await anybody.get('/sessions')).status).toBe(401);
    expect((await anybody.get('/sessions', { authorization: 'Bearer wrong' })).status).toBe(401);
    expect((await anybody.post('/sessions/default/executions', { code: '1' })).status).toBe(401);
    expect((await anybody.get('/sessions', { authorization: `Bearer ${token}` })).status).toBe(200);
    await stop(served);
    await agent.close();
  });
});

test('a folder without a server gets one, whose session a shell of the folder shares', async () => {
  const cwd = home.project();
  await runOutside(['run', '-c', 'z = 3'], { home, cwd });
  const served = await startUi(cwd);
  expect((await served.page.post('/sessions/default/executions', { code: 'print(z)' })).status).toBe(202);
  const text = await waitFor('its text', async () => {
    const answer = await served.page.get('/sessions/default/executions/2/output');
    return answer.status === 200 && answer.json<{ text: string }>().text;
  });
  expect(text).toBe('3\n');
  await stop(served);
});

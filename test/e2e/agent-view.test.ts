/** Checks what an agent is shown and what its model reads: a short list of tools, and answers as text. */

import { describe, expect, onTestFinished, test } from 'vitest';
import { runCli, startAgent, useHome, waitFor } from './harness.ts';

const home = useHome();
/** Bytes of the list as it goes over the wire. It was 48,829 with all tools, of which 23,619 were output schemas. */
const FIRST_LIST = 8000;
const WHOLE_LIST = 22_500;

async function connect(era: 'legacy' | 'modern', args: string[] = []) {
  const agent = await startAgent({ home, era, cwd: home.project(), args });
  onTestFinished(() => agent.close());
  const list = async () => (await agent.client.listTools()).tools;
  /** As an agent calls: without asking for anything. */
  const call = (name: string, given: Record<string, unknown>) => agent.client.callTool({ name, arguments: given });
  return { agent, client: agent.client, list, call };
}

const bytes = (value: unknown) => Buffer.byteLength(JSON.stringify(value));

describe.each(['legacy', 'modern'] as const)('over stdio, in the %s protocol,', (era) => {
  test('the model reads the text alone, and programs that ask get the fields', async () => {
    const { agent, call } = await connect(era);
    const plain = await call('execute', { code: 'print("a\\nb")\n6' });
    expect(plain.content).toEqual([{ type: 'text', text: 'a\nb\n6' }]);
    expect(plain).not.toHaveProperty('structuredContent');
    const failed = await call('execute', { code: '1', session: 'no-such' });
    expect(failed).not.toHaveProperty('structuredContent');
    expect(failed).toMatchObject({ isError: true, content: [{ text: expect.stringContaining('no session no-such') }] });
    expect((await agent.execute('6')).structured).toMatchObject({ output: '6\n', outcome: 'ok' });
  });

  test('a picture comes without an empty text beside it', async () => {
    const { call } = await connect(era);
    const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg==';
    const code = `class P:\n  def _repr_mimebundle_(self, **_): return {"image/png": "${png}"}\nP()`;
    const { content } = await call('execute', { code });
    expect(content.map(({ type }) => type)).toContain('image');
    expect(content).not.toContainEqual({ type: 'text', text: '' });
  });

  test('a new session reports its id, and a background run says how to follow it there', async () => {
    const { call } = await connect(era);
    const { content } = await call('execute', { code: 'x = 1', session: 'new' });
    const [, session] = /^\[session (\S+)\]$/.exec(content[0]?.type === 'text' ? content[0].text : '') ?? [];
    expect(session).toBeDefined();
    const begun = await call('execute', { code: 'x', session, background: true });
    expect(begun.content[0]).toMatchObject({
      text: expect.stringContaining(`get_output(execution=2, session="${session}")`),
    });
  });

  test('types, shapes and sizes of variables are in the text if they are asked for', async () => {
    const { call } = await connect(era);
    await call('execute', { code: 'n = 5; words = ["a", "b"]' });
    const { content } = await call('list_vars', { details: true });
    expect(content[0]).toMatchObject({
      text: expect.stringMatching(/^n: int, \d+ bytes\nwords: list \[2\], \d+ bytes$/),
    });
  });

  test(`the list of tools has less than ${FIRST_LIST} bytes and no output schemas`, async () => {
    const tools = await (await connect(era)).list();
    expect(bytes(tools)).toBeLessThan(FIRST_LIST);
    expect(tools.map(({ name }) => name).slice(-2)).toEqual(['colab_attach', 'colab_status']);
    expect(tools).toHaveLength(12);
    for (const tool of tools) expect(tool).not.toHaveProperty('outputSchema');
  });

  test(`the lab's tools are listed once they are asked for, the client is notified, and all tools have less than ${WHOLE_LIST} bytes`, async () => {
    const { client, list, call } = await connect(era);
    let told = 0;
    client.setNotificationHandler('notifications/tools/list_changed', () => {
      told += 1;
    });
    if (era === 'modern') {
      const subscription = await client.listen({ toolsListChanged: true });
      onTestFinished(() => subscription.close());
    }
    expect(client.getServerCapabilities()?.tools?.listChanged).toBe(true);
    expect((await call('colab_status', {})).isError).not.toBe(true);
    await waitFor('the notification', () => told > 0);
    const tools = await list();
    expect(tools).toHaveLength(24);
    expect(bytes(tools)).toBeLessThan(WHOLE_LIST);
    expect((await call('list_probes', {})).isError).not.toBe(true);
    expect(told, 'one notification for all of them').toBe(1);
  });

  test('--tools decides which tools are listed, and --structured adds output schemas', async () => {
    const all = await connect(era, ['--tools', 'all']);
    expect(await all.list()).toHaveLength(24);
    expect(all.client.getServerCapabilities()?.tools?.listChanged).toBe(false);
    const code = await connect(era, ['--tools', 'code', '--structured']);
    const tools = await code.list();
    expect(tools).toHaveLength(10);
    expect(code.client.getInstructions()).not.toContain('lab');
    for (const tool of tools) expect(tool.outputSchema).toMatchObject({ type: 'object' });
    expect(await code.call('execute', { code: '6' })).toMatchObject({ structuredContent: { output: '6\n' } });
  });

  test('a mistyped argument is refused with the name that was meant', async () => {
    const { call } = await connect(era);
    expect(await call('execute', { code: '1', timout: 3 })).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining('Unknown argument timout; did you mean timeout?') }],
    });
  });
});

test('from a shell, a mistyped argument is refused too, and --json prints the fields', async () => {
  const cwd = home.project();
  const agent = await startAgent({ home, cwd });
  onTestFinished(() => agent.close());
  await agent.execute('here = 1');
  const refused = await runCli(['call', 'execute', '{"code": "1", "timout": 3}'], { home, cwd });
  expect(refused).toMatchObject({ code: 1, stdout: expect.stringContaining('did you mean timeout?') });
  const { stdout } = await runCli(['call', '--json', 'execute', '{"code": "here"}'], { home, cwd });
  expect(JSON.parse(stdout)).toMatchObject({ output: '1\n', outcome: 'ok' });
});

test("get_session_info reports the agent's own conversation, and its transcript once there is one", async () => {
  const cwd = home.project();
  const env = { CLAUDE_CONFIG_DIR: home.project('claude'), CLAUDE_CODE_SESSION_ID: 'of-this-conversation' };
  const agent = await startAgent({ home, cwd, env });
  onTestFinished(() => agent.close());
  const { text, structured } = await agent.call('get_session_info');
  expect(structured).toMatchObject({ client_session_id: 'of-this-conversation', client_pid: process.pid });
  expect(structured).not.toHaveProperty('transcript_path');
  expect(text).toContain('client_session_id: of-this-conversation\n');
});

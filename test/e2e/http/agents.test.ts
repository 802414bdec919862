/** Connects an agent to a service over HTTP, and checks its lab, its shell and what a service keeps from its callers. */

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createHome, MAIN, runCli, waitFor } from '../harness.ts';
import { connectMcp } from './mcp-client.ts';
import { anotherService, endHome, type Service, startService, useService } from './service.ts';

const service = await useService({ preload: 'none' });
/** As a shell that Claude Code started. */
const INSIDE = { CLAUDECODE: '1' };
const KEY = 'agents-key-0123456789';

async function protectedService(args: string[] = []): Promise<Service> {
  const home = createHome({ preload: 'none' });
  onTestFinished(() => endHome(home));
  return anotherService({ home, env: { CUVETTE_API_KEY: KEY }, args });
}

const listed = async (client: Client) => (await client.listTools()).tools.map(({ name }) => name);

describe('the lab of a service', () => {
  test.each(['legacy', 'modern'] as const)(
    'is listed once it is asked for, and a client of the %s protocol is notified',
    async (era) => {
      const home = createHome({ preload: 'none' });
      onTestFinished(() => endHome(home));
      const fresh = await startService({ home });
      onTestFinished(async () => void (await fresh.stop()));
      const versionNegotiation = { mode: { pin: '2026-07-28' } };
      const client = new Client({ name: 'e2e', version: '1' }, era === 'modern' ? { versionNegotiation } : {});
      await client.connect(new StreamableHTTPClientTransport(new URL(`${fresh.url}/mcp`)));
      onTestFinished(() => client.close());
      let told = 0;
      client.setNotificationHandler('notifications/tools/list_changed', () => {
        told += 1;
      });
      if (era === 'modern') await client.listen({ toolsListChanged: true });
      expect(await listed(client)).toHaveLength(12);
      const attached = await client.callTool({ name: 'colab_attach', arguments: { endpoint: 'demo' } });
      expect(attached.isError, JSON.stringify(attached.content)).not.toBe(true);
      await waitFor('the notification', () => told > 0);
      expect(await listed(client)).toHaveLength(24);
    },
  );

  test('works on files of the workspace and on no others', async () => {
    const { call, execute } = await connectMcp(service);
    await execute(`import json, os
rows = [{"prompt": f"Report: The old {noun}{s}", "label": int(s == "s"), "pair_id": noun} for noun in ["lamp", "gate"] for s in ["", "s"]]
open("rows.jsonl", "w").write("\\n".join(map(json.dumps, rows)))
os.symlink("/etc/passwd", "link.jsonl")
os.mkfifo("fifo.jsonl")`);
    const captured = await call('capture_acts', { prompts_file: 'rows.jsonl', layers: [2] });
    expect(captured.structured, captured.text).toMatchObject({ n_prompts: 4 });
    for (const prompts_file of ['/etc/passwd', '../../../../etc/passwd', 'link.jsonl', 'fifo.jsonl', 'none.jsonl']) {
      const { isError, text } = await call('capture_acts', { prompts_file, layers: [2] });
      expect([isError, text.includes('root:')], prompts_file).toEqual([true, false]);
    }
    const { capture_id } = captured.structured as { capture_id: string };
    for (const [name, args] of [
      ['colab_attach', { endpoint: '/etc' }],
      ['colab_attach', { endpoint: 'org/model' }],
      ['load_probe', { probe_id: 'p', source: '/etc/passwd', layer: 2 }],
      ['sae_lookup', { sae_id: '/etc', capture_id, layer: 2 }],
      ['steer', { prompt: 'a', layer: 2, direction_id: '/etc#1', alpha: 1 }],
    ] as const) {
      const { structured, text } = await call(name, args);
      expect(structured, text).toMatchObject({ error: { code: 'forbidden' } });
    }
  });

  test('can be called by a client that was shown it before the service was restarted', async () => {
    const { call } = await connectMcp(service);
    expect((await call('list_probes')).isError).toBe(false);
  });

  test('is absent where callers other than this machine may come, unless the operator admits models', async () => {
    const headers = { 'x-api-key': KEY };
    const closed = await connectMcp(await protectedService(), '/mcp', headers);
    expect(await listed(closed.client)).toHaveLength(10);
    await expect(closed.call('colab_attach', { endpoint: 'demo' })).rejects.toThrow(/not found/);
    const admitting = await connectMcp(await protectedService(['--lab-endpoints', 'demo']), '/mcp', headers);
    expect((await admitting.call('colab_attach', { endpoint: 'demo' })).isError).toBe(false);
    const refused = await admitting.call('colab_attach', { endpoint: 'http://127.0.0.1:9', token: 't' });
    expect(refused.structured, 'no request is made for a caller').toMatchObject({ error: { code: 'forbidden' } });
  });
});

describe('the shell of an agent', () => {
  const shell = (code: string, { home } = service) =>
    runCli(['run', '-c', code], { home, cwd: home.project(), env: INSIDE });

  test("shares the agent's session, wherever the service was started", async () => {
    const { execute } = await connectMcp(service);
    await execute('x = 41');
    expect(await shell('x += 1; x')).toEqual({ code: 0, stdout: '42\n', stderr: '' });
    expect((await execute('x')).text).toBe('42');
  });

  test("shares the agent's session in the service's own folder too, once the agent has used it", async () => {
    const home = createHome({ preload: 'none' });
    onTestFinished(() => endHome(home));
    const cwd = home.project();
    const here = await anotherService({ home, cwd });
    const run = (code: string) => runCli(['run', '-c', code], { home, cwd, env: INSIDE });
    expect((await run('import os; y = 1; os.getcwd()')).stdout).toBe(`'${cwd}'\n`);
    const { execute } = await connectMcp(here);
    await execute('x = 41');
    expect((await run('x + 1')).stdout).toBe('42\n');
  });

  test("shares the agent's session where the service requires a key", async () => {
    const guarded = await protectedService();
    const { execute } = await connectMcp(guarded, '/mcp', { 'x-api-key': KEY });
    await execute('x = 41');
    expect((await shell('x + 1', guarded)).stdout).toBe('42\n');
  });

  test('is told what to do where no service runs', async () => {
    const home = createHome({ preload: 'none' });
    onTestFinished(() => endHome(home));
    const { code, stderr } = await runCli(['run', '-c', '1'], { home, cwd: home.project(), env: INSIDE });
    expect(code).toBe(69);
    expect(stderr).toContain(`claude mcp add cuvette -- node ${MAIN} mcp`);
    expect(stderr).toContain(`node ${MAIN} serve`);
    expect(stderr).toContain(`node ${MAIN} run --start`);
  });

  test("is described in the agent's instructions where the agent is on this machine", async () => {
    const { client } = await connectMcp(service);
    expect(client.getInstructions()).toContain(`node ${MAIN} run <<'PY'`);
  });
});

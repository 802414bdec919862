/** Plays the example session letter for letter, in both eras of the protocol. */

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { describe, expect, test } from 'vitest';
import { MAIN, startAgent, useHome } from './harness.ts';

const TOOLS = [
  'add_interpreter',
  'capture_acts',
  'causality_protocol',
  'colab_attach',
  'colab_detach',
  'colab_status',
  'execute',
  'export_session',
  'get_output',
  'get_session_info',
  'interrupt',
  'list_interpreters',
  'list_manifests',
  'list_probes',
  'list_vars',
  'load_probe',
  'patch_map',
  'probe_eval',
  'reset',
  'sae_lookup',
  'steer',
  'stop_interpreter',
  'sweep',
  'train_probe',
];
const home = useHome();

describe.each([
  { era: 'legacy' as const, version: '2025-11-25' },
  { era: 'modern' as const, version: '2026-07-28' },
])('in the $era protocol,', ({ era, version }) => {
  test('the example session gives the answers it promises', async () => {
    const agent = await startAgent({ home, era, cwd: home.project() });
    expect(agent.client.getNegotiatedProtocolVersion()).toBe(version);
    const answers = [
      await agent.execute('import math; pi_squared = math.pi ** 2'),
      await agent.execute('pi_squared'),
      await agent.call('list_vars'),
      await agent.call('reset'),
      await agent.call('list_vars'),
    ];
    expect(answers.map(({ text }) => text)).toEqual([
      '',
      '9.869604401089358',
      'math, pi_squared',
      'Scope cleared (2 items removed)',
      'No variables defined',
    ]);
    expect(answers.some(({ isError }) => isError)).toBe(false);
    expect((await agent.execute('pi_squared')).text).toContain('NameError');
    await agent.close();
  });

  test('values, prints, imports and errors are reported as they are', async () => {
    const agent = await startAgent({ home, era, cwd: home.project() });
    expect((await agent.execute('x = 5')).text).toBe('');
    expect((await agent.execute('x * 2')).text).toBe('10');
    expect((await agent.execute("print(f'x = {x}')")).text).toBe('x = 5');
    expect((await agent.execute('import math; math.pi')).text).toBe('3.141592653589793');
    const failed = await agent.execute('1/0');
    expect(failed.text).toContain('ZeroDivisionError: division by zero');
    expect(failed.isError).toBe(true);
    await agent.close();
  });

  test('every tool is listed with all that a program needs to know if it asks', async () => {
    const args = ['--tools', 'all', '--structured'];
    const agent = await startAgent({ home, era, cwd: home.project(), args });
    const { tools } = await agent.client.listTools();
    expect(tools.map(({ name }) => name).sort()).toEqual(TOOLS);
    for (const tool of tools) {
      expect(tool.description?.length, tool.name).toBeGreaterThan(20);
      expect(Object.keys(tool.annotations ?? {}), tool.name).toEqual(
        expect.arrayContaining(['readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint']),
      );
      expect(tool.inputSchema, tool.name).toMatchObject({ type: 'object', properties: expect.any(Object) });
      expect(tool.outputSchema, tool.name).toMatchObject({ type: 'object', properties: expect.any(Object) });
    }
    await agent.close();
  });
});

test('the standard output of the server has nothing but the protocol, whatever the code writes', async () => {
  const server = spawn(process.execPath, [MAIN, 'mcp'], {
    cwd: home.project(),
    env: home.env(),
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const lines: string[] = [];
  const answers = new Map<number, (message: { result: { content: { text: string }[] } }) => void>();
  createInterface({ input: server.stdout }).on('line', (line) => {
    lines.push(line);
    const message = JSON.parse(line);
    answers.get(message.id)?.(message);
  });
  const send = (message: object) => server.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  const ask = (id: number, method: string, params: object) =>
    new Promise<{ result: { content: { text: string }[] } }>((resolve) => {
      answers.set(id, resolve);
      send({ id, method, params });
    });
  const clientInfo = { name: 'raw', version: '1' };
  await ask(1, 'initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo });
  send({ method: 'notifications/initialized' });
  const code =
    'import os, sys, subprocess\nprint("printed")\nsys.__stdout__.write("kept stream\\n"); sys.__stdout__.flush()\nos.write(1, b"descriptor\\n")\nsubprocess.run(["echo", "child"])\nos.system("echo shell; echo error >&2")';
  const { result } = await ask(2, 'tools/call', { name: 'execute', arguments: { code } });
  for (const word of ['printed', 'kept stream', 'descriptor', 'child', 'shell', 'error'])
    expect(result.content[0]?.text).toContain(word);
  const ended = new Promise((resolve) => server.once('close', resolve));
  server.stdin.end();
  await ended;
  expect(lines.length).toBeGreaterThanOrEqual(2);
  for (const line of lines) expect(JSON.parse(line)).toMatchObject({ jsonrpc: '2.0' });
});

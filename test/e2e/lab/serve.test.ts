/** A lab that is served, and an agent that attaches it by its URL and token. */

import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { demoQuestions } from '../../../src/lab/demo/questions.ts';
import { kill, type RunningCli, runCli, startAgent, startCli, useHome, waitFor } from '../harness.ts';
import { PATIENCE } from './patience.ts';

const home = useHome();

async function startLab(args: string[] = []): Promise<{ cli: RunningCli; url: string; token: string }> {
  const cli = startCli(['lab', 'serve', '--model', 'demo', '--port', '0', ...args], {
    home,
    cwd: home.project(),
    timeout: PATIENCE,
  });
  await waitFor('the lab listens', () => /Ctrl-C stops it/.test(cli.stdout()) || cli.child.exitCode !== null);
  const find = (pattern: RegExp) => pattern.exec(cli.stdout())?.[1] ?? '';
  return { cli, url: find(/Endpoint: (\S+)/), token: find(/Token: +(\S+)/) };
}

async function stop({ cli }: { cli: RunningCli }): Promise<number | null> {
  kill(cli.child.pid ?? 0, 'SIGTERM');
  return (await cli.done).code;
}

test(
  'an agent captures, trains, steers and gets a verdict there as it would here',
  async () => {
    const lab = await startLab();
    const cwd = home.project();
    const agent = await startAgent({ home, cwd });
    const { url, token } = lab;
    const attached = await agent.call('colab_attach', { endpoint: url, token, session_name: 'remote' });
    expect(attached.structured, attached.text).toMatchObject({ ok: true, endpoint: url, health: { model_id: 'demo' } });

    const [question] = demoQuestions(0);
    const rows = question?.dataset ?? [];
    const captured = await agent.call('capture_acts', {
      session_name: 'remote',
      prompts: rows.map(({ prompt }) => prompt),
      labels: rows.map(({ label }) => label),
      pair_ids: rows.map(({ pair }) => pair),
      layers: [question?.layer],
    });
    const { capture_id } = captured.structured;
    const asked = {
      session_name: 'remote',
      fit: 'difference-of-means',
      capture_id,
      positive_tokens: question?.target.positive,
      negative_tokens: question?.target.negative,
      report: true,
    };
    const verdict = await agent.call('causality_protocol', asked);
    expect(verdict.structured, verdict.text).toMatchObject({
      verdict: 'causal',
      report_file: expect.stringContaining(cwd),
    });
    expect(existsSync(String(verdict.structured.report_file))).toBe(true);

    // The same here gives the same.
    await agent.call('colab_attach', { endpoint: 'demo', session_name: 'local' });
    const here = await agent.call('causality_protocol', { ...asked, session_name: 'local', report: false });
    expect(here.structured.manifest_sha256, here.text).toBe(verdict.structured.manifest_sha256);
    await agent.close();

    const next = await startAgent({ home, cwd });
    expect((await next.call('colab_status', { session_name: 'remote' })).structured).toMatchObject({
      model_id: 'demo',
    });
    expect(await stop(lab)).toBe(0);
    expect((await next.call('colab_status', { session_name: 'remote' })).text).toContain('does not answer');
    await next.close();
    expect(readFileSync(join(home.data, 'lab', 'sessions.json'), 'utf8')).not.toContain(token);
  },
  PATIENCE,
);

describe('the token', () => {
  test('is asked of everybody', async () => {
    const lab = await startLab();
    expect((await fetch(`${lab.url}/health`)).status).toBe(401);
    expect((await fetch(`${lab.url}/health`, { headers: { authorization: 'Bearer wrong' } })).status).toBe(401);
    const right = await fetch(`${lab.url}/health`, { headers: { authorization: `Bearer ${lab.token}` } });
    expect(await right.json()).toMatchObject({ ok: true, model_id: 'demo' });
    await stop(lab);
  });

  test('can be in a file, and is then not printed', async () => {
    const file = join(home.project(), 'token');
    const lab = await startLab(['--token-file', file]);
    const token = readFileSync(file, 'utf8').trim();
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(lab.cli.stdout()).not.toContain(token);
    expect((await fetch(`${lab.url}/health`, { headers: { authorization: `Bearer ${token}` } })).status).toBe(200);
    await stop(lab);
  });
});

describe('a lab does not start', () => {
  test.each([
    [['--host', '0.0.0.0'], 2, /on this machine alone/],
    [['--model', './none'], 2, /no folder/],
    [['--modle', 'demo'], 2, /Run: cuvette help/],
    [['--port', '99999'], 2, /port/],
  ])('with %j', async (args, code, message) => {
    const result = await runCli(['lab', 'serve', ...args], { home, cwd: home.project() });
    expect(result.code).toBe(code);
    expect(result.stderr).toMatch(message);
  });

  test('without a command, and says which there are', async () => {
    const result = await runCli(['lab'], { home, cwd: home.project() });
    expect(result.code).toBe(2);
    expect(result.stderr).toContain('cuvette lab demo');
  });
});

/** Serves a lab, which an agent attaches by its URL and token. */

import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { demoQuestions } from '../../../src/lab/demo/questions.ts';
import { runCli, startAgent, useHome } from '../harness.ts';
import { PATIENCE } from './patience.ts';
import { startLab, stopLab } from './start-lab.ts';

const home = useHome({ preload: 'none' });

test(
  'an agent captures, trains, steers and gets a verdict in a served lab as it would in a local one',
  async () => {
    const lab = await startLab(home);
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
    expect(await stopLab(lab)).toBe(0);
    expect((await next.call('colab_status', { session_name: 'remote' })).text).toContain('does not answer');
    await next.close();
    expect(readFileSync(join(home.data, 'lab', 'sessions.json'), 'utf8')).not.toContain(token);
  },
  PATIENCE,
);

describe('the token of a lab', () => {
  test('is required of every caller', async () => {
    const lab = await startLab(home);
    expect((await fetch(`${lab.url}/health`)).status).toBe(401);
    expect((await fetch(`${lab.url}/health`, { headers: { authorization: 'Bearer wrong' } })).status).toBe(401);
    const right = await fetch(`${lab.url}/health`, { headers: { authorization: `Bearer ${lab.token}` } });
    expect(await right.json()).toMatchObject({ ok: true, model_id: 'demo' });
    await stopLab(lab);
  });

  test('can come from a file and is then not printed', async () => {
    const file = join(home.project(), 'token');
    const lab = await startLab(home, ['--token-file', file]);
    const token = readFileSync(file, 'utf8').trim();
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(lab.cli.stdout()).not.toContain(token);
    expect((await fetch(`${lab.url}/health`, { headers: { authorization: `Bearer ${token}` } })).status).toBe(200);
    await stopLab(lab);
  });

  test.each([
    ['others can read', 0o644, /can read or change the token in token, .*chmod 600 token/],
    ['its owner alone can read', 0o600, /^(?!.*can read or change)/s],
  ])('in a file that %s is accepted, with a warning if others can read it', async (_, mode, said) => {
    const cwd = home.project();
    writeFileSync(join(cwd, 'token'), 'a-token-of-my-own\n');
    chmodSync(join(cwd, 'token'), mode);
    const args = ['lab', 'serve', '--token-file', 'token', '--model', './none'];
    const { stderr } = await runCli(args, { home, cwd });
    expect(stderr).toMatch(said);
    expect(stderr).toMatch(/no folder/);
    expect(stderr).not.toContain('a-token-of-my-own');
  });

  test('can come from the environment and is then not printed', async () => {
    const token = 'a-token-of-my-own';
    const lab = await startLab(home, [], { CUVETTE_LAB_TOKEN: token });
    expect(lab.cli.stdout()).toContain('token="the value of CUVETTE_LAB_TOKEN"');
    expect(lab.cli.stdout()).not.toContain(token);
    expect((await fetch(`${lab.url}/health`, { headers: { authorization: `Bearer ${token}` } })).status).toBe(200);
    await stopLab(lab);
  });

  test('from the environment is refused if it is too short, without being shown', async () => {
    const env = { CUVETTE_LAB_TOKEN: 'too-short' };
    const { code, stderr } = await runCli(['lab', 'serve'], { home, cwd: home.project(), env });
    expect(code).toBe(2);
    expect(stderr).toMatch(/CUVETTE_LAB_TOKEN is no token: 16 characters/);
    expect(stderr).not.toContain('too-short');
  });
});

describe('a lab does not start', () => {
  test.each([
    [['--model', './none'], 2, /no folder/],
    [['--modle', 'demo'], 2, /Run: cuvette help/],
    [['--port', '99999'], 2, /port/],
    [['--engine', 'magic'], 2, /--engine: .*"torch".*\. Run: cuvette help/],
    [['--token-file', '.'], 2, /The token cannot be read from \.: EISDIR.*Give a file/],
  ])('with the arguments %j', async (args, code, message) => {
    const result = await runCli(['lab', 'serve', ...args], { home, cwd: home.project() });
    expect(result.code).toBe(code);
    expect(result.stderr).toMatch(message);
  });

  test('without a command, and says which commands there are', async () => {
    const result = await runCli(['lab'], { home, cwd: home.project() });
    expect(result.code).toBe(2);
    expect(result.stderr).toContain('cuvette lab demo');
  });
});

/** Tests code in the Python of a remote lab: `execute(interpreter="colab")`. */

import { existsSync } from 'node:fs';
import { beforeAll, expect, inject, test } from 'vitest';
import { gone, kill, parentOf, processesOf, waitFor } from '../../../e2e/harness.ts';
import { type RemoteAgent, type ServedLab, useServed } from './served-lab.ts';

const python = inject('richTorchPython');
const served = useServed();
let lab: ServedLab;
let agent: RemoteAgent;
beforeAll(async () => {
  ({ lab, agent } = await served.serveAndAttach({ python }));
});

/** What the last expression shows. */
async function shown(code: string): Promise<string> {
  const { structured, text } = await agent.beside(code);
  expect(structured.outcome, text).toBe('ok');
  return structured.output.trim();
}

test('code in a remote lab keeps its variables from call to call, and has the model', async () => {
  await agent.beside('kept = 41');
  expect(await shown('kept + 1')).toBe('42');
  expect(await shown('type(model).__name__')).toBe("'LlamaForCausalLM'");
  expect(await shown('model(tokenizer("The key", return_tensors="pt").input_ids).logits.ndim')).toBe('3');
});

test('code in a remote lab runs where the lab is, not where the agent is', async () => {
  const [folder = '', pid = ''] = (await shown('import os; print(os.getcwd(), os.getpid())')).split(' ');
  expect(folder.startsWith(lab.home.root)).toBe(true);
  expect(processesOf(lab.home.root).map((one) => one.pid)).toContain(Number(pid));
});

test('code in a remote lab shows errors with their traceback, and goes on', async () => {
  const answer = await agent.beside('def half():\n    return 1 / 0\nhalf()');
  expect(answer.structured).toMatchObject({ outcome: 'error' });
  expect(answer.text).toMatch(/in half[\s\S]*ZeroDivisionError: division by zero/);
  expect(await shown('kept')).toBe('41');
});

test('code in a remote lab is stopped at its timeout, and keeps its variables', async () => {
  const answer = await agent.beside('import time\nwhile True: time.sleep(0.1)', { timeout: 1 });
  expect(answer.structured, answer.text).toMatchObject({ outcome: 'timeout', reason: { code: 'timeout' } });
  expect(await shown('kept')).toBe('41');
});

test('code in a remote lab is read while it runs in the background, and stopped by interrupt', async () => {
  const started = await agent.beside('import time\nprint("begun", flush=True)\nwhile True: time.sleep(0.1)', {
    background: true,
  });
  const { execution } = started.structured;
  await waitFor('its output', async () => {
    const { structured } = await agent.call('get_output', { execution, wait: 5 });
    return structured.state === 'running' && structured.output.includes('begun');
  });
  await agent.ask('interrupt', { execution });
  const { structured } = await agent.call('get_output', { execution, wait: 20 });
  expect(structured).toMatchObject({ outcome: 'cancelled', reason: { code: 'cancelled' } });
  expect(await shown('kept')).toBe('41');
});

test.skipIf(python === null)('code in a remote lab shows figures', async () => {
  const { content } = await agent.beside('import matplotlib.pyplot as plot\nplot.plot([1, 2])\nplot.show()');
  expect(content).toContainEqual(expect.objectContaining({ type: 'image', mimeType: 'image/png' }));
});

test('code in a remote lab lists its variables, and has only the model after a reset', async () => {
  const { variables } = await agent.ask('list_vars', { interpreter: 'colab' });
  expect(variables).toContainEqual(expect.objectContaining({ name: 'kept' }));
  await agent.ask('reset', { interpreter: 'colab' });
  expect(await shown('"kept" in globals(), "model" in globals()')).toBe('(False, True)');
});

test('the Python of a remote lab that died while idle is reported, and the next call has the model again', async () => {
  const pid = Number(await shown('kept = 1\nimport os\nos.getpid()'));
  await agent.beside('import threading\nthreading.Timer(0.5, os.kill, (os.getpid(), 9)).start()');
  await waitFor('the keeper takes note', () => !existsSync(`/proc/${pid}`));
  const answer = await agent.beside('"kept" in globals(), type(model).__name__');
  expect(answer.structured, answer.text).toMatchObject({ outcome: 'ok' });
  expect(answer.structured.output).toContain("(False, 'LlamaForCausalLM')");
  expect(answer.structured.notes.join(' ')).toMatch(/lost/);
  expect(await agent.ask('colab_status')).toMatchObject({ ok: true, engine: 'torch' });
});

test('the Python of a remote lab ends with its server when that is killed', async () => {
  const worker = Number(await shown('import os; os.getpid()'));
  const keeper = parentOf(worker);
  kill(lab.pid);
  // The zygote that they were forked from holds no model. It waits a minute for another server, or until its socket is gone.
  await Promise.all([lab.pid, worker, keeper].map(gone));
});

/** Runs an agent that stores nothing about the labs that it was given. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createFakeLab } from '../../lab/fake-lab.ts';
import { serveLab, TOKEN } from '../../lab/served.ts';
import { startAgent, useHome } from '../harness.ts';

const home = useHome({ preload: 'none' });

test.each([
  ['--no-store', { args: ['--no-store'] }],
  ['CUVETTE_STORE', { env: { CUVETTE_STORE: 'off' } }],
])('with %s, the names and tokens of labs end with the process', async (_, options) => {
  const { url } = await serveLab(createFakeLab().lab);
  const cwd = home.project();
  const agent = await startAgent({ home, cwd, ...options });
  const attached = await agent.call('colab_attach', { endpoint: url, token: TOKEN, session_name: 'remote' });
  expect(attached.structured, attached.text).toMatchObject({ ok: true, health: { model_id: 'fake' } });
  await agent.close();
  expect(existsSync(join(home.data, 'lab'))).toBe(false);
  const next = await startAgent({ home, cwd, ...options });
  expect((await next.call('colab_status', { session_name: 'remote' })).text).toContain('no lab session remote');
  await next.close();
});

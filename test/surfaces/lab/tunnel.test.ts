/** A tunnel that is kept open, with programs that stand for the real ones. */

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { openTunnel, type Tunnel, type TunnelOptions } from '../../../src/surfaces/lab/tunnel.ts';
import { findTunnelClient, type TunnelName } from '../../../src/surfaces/lab/tunnel-clients.ts';
import { allGone, gone, isAlive, kill, waitFor } from '../../e2e/harness.ts';
import { type FakeTunnels, makeTunnels } from '../../e2e/lab/fake-tunnels.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

const open: Tunnel[] = [];
/** Of the test that runs. */
let folder = '';

afterEach(async () => {
  vi.unstubAllEnvs();
  await Promise.all(open.splice(0).map((tunnel) => tunnel.close()));
});

function fakes(scripts?: { before?: string; after?: string }): FakeTunnels {
  folder = temporaryFolder();
  const tunnels = makeTunnels(folder, scripts);
  vi.stubEnv('PATH', tunnels.PATH);
  return tunnels;
}

async function start(name: TunnelName, options: Partial<TunnelOptions> = {}) {
  const addresses: string[] = [];
  const troubles: string[] = [];
  const tunnel = await openTunnel({
    client: findTunnelClient(name),
    address: '127.0.0.1:8787',
    onAddress: (url) => addresses.push(url),
    onTrouble: (message) => troubles.push(message),
    signal: new AbortController().signal,
    pause: 10,
    ...options,
  });
  open.push(tunnel);
  return { tunnel, addresses, troubles };
}

describe('the address', () => {
  test('of cloudflared is in its log, and not the one of its service', async () => {
    const tunnels = fakes();
    const { tunnel } = await start('cloudflared');
    expect(tunnel.url()).toBe('https://start-1.trycloudflare.com');
    expect(tunnels.last().args).toEqual(['tunnel', '--no-autoupdate', '--url', 'http://127.0.0.1:8787']);
  });

  test('of ngrok is in the line that says so', async () => {
    const tunnels = fakes();
    const { tunnel } = await start('ngrok');
    expect(tunnel.url()).toBe('https://start-1.ngrok-free.app');
    expect(tunnels.last().args).toEqual(['http', '127.0.0.1:8787', '--log', 'stdout', '--log-format', 'json']);
  });
});

test('a program that tells no address in time is ended, and what it said is told', async () => {
  const tunnels = fakes({ before: "fs.writeSync(2, 'INF still asking\\n'); stay(); return;" });
  const opening = start('cloudflared', { patience: 3000 });
  await expect(opening).rejects.toThrow(/cloudflared told no address within 3 seconds.*still asking/s);
  expect(isAlive(tunnels.last().pid)).toBe(false);
});

test('a program that fails at once is told with its last words, without the credential in them', async () => {
  fakes({ before: "end(1, 'ERROR: authentication failed: Your authtoken: ' + process.env.NGROK_AUTHTOKEN);" });
  vi.stubEnv('NGROK_AUTHTOKEN', '2abcDEF-secret');
  const message = await start('ngrok').then(String, String);
  expect(message).toMatch(/ngrok ended with code 1.*Your authtoken: …/s);
  expect(message).not.toContain('2abcDEF-secret');
});

test('when it ends, that is told, and it is opened again with another address', async () => {
  const tunnels = fakes({ after: "start < 3 ? setTimeout(() => end(7, 'ERR edge is gone'), 50) : stay()" });
  const { tunnel, addresses, troubles } = await start('cloudflared');
  await waitFor('a third tunnel', () => addresses.length === 2);
  expect(addresses).toEqual(['https://start-2.trycloudflare.com', 'https://start-3.trycloudflare.com']);
  expect(tunnel.url()).toBe('https://start-3.trycloudflare.com');
  expect(troubles).toHaveLength(2);
  expect(troubles[0]).toMatch(/ended with code 7.*ERR edge is gone.*again in 0.01 s/s);
  expect(troubles[1]).toContain('again in 0.02 s');
  expect(tunnels.starts()).toBe(3);
});

test('while it is gone, there is no address', async () => {
  const tunnels = fakes();
  const { tunnel, troubles } = await start('cloudflared', { pause: 60_000 });
  kill(tunnels.last().pid);
  await waitFor('the end', () => troubles.length === 1);
  expect(tunnel.url()).toBeUndefined();
  expect(troubles[0]).toContain('ended with SIGKILL');
  await tunnel.close();
  expect(tunnels.starts()).toBe(1);
});

test('closing ends the program and what it has started, also if it does not listen', async () => {
  const child = "require('node:child_process').spawn('sleep', ['600'], { stdio: 'inherit' })";
  const tunnels = fakes({ after: `process.on('SIGTERM', () => {}); ${child}; stay()` });
  const { tunnel, troubles } = await start('cloudflared');
  await tunnel.close();
  await gone(tunnels.last().pid);
  await allGone(folder);
  expect(troubles).toEqual([]);
});

test('giving up while it opens ends it', async () => {
  const tunnels = fakes({ before: 'stay(); return;' });
  const stop = new AbortController();
  const opening = start('cloudflared', { signal: stop.signal });
  await waitFor('it runs', () => tunnels.starts() === 1);
  stop.abort(new Error('given up'));
  await expect(opening).rejects.toThrow('given up');
  expect(isAlive(tunnels.last().pid)).toBe(false);
});

test('its environment has its own variables, and nothing else of ours', async () => {
  const tunnels = fakes();
  vi.stubEnv('NGROK_AUTHTOKEN', 'its-own');
  vi.stubEnv('HF_TOKEN', 'hf_not_yours');
  vi.stubEnv('CUVETTE_LAB_TOKEN', 'not-yours-either');
  await start('ngrok');
  const { env } = tunnels.last();
  expect(env.NGROK_AUTHTOKEN).toBe('its-own');
  expect(Object.keys(env).filter((name) => /^(HF_|CUVETTE_|VITEST)/.test(name))).toEqual([]);
});

describe('a program that is not there', () => {
  test.each([
    ['cloudflared', /cloudflared is not on PATH.*cloudflared-linux-|brew install cloudflared/s],
    ['ngrok', /ngrok is not on PATH.*NGROK_AUTHTOKEN/s],
  ])('%s: the error says how to install it', (name, message) => {
    vi.stubEnv('PATH', temporaryFolder());
    expect(() => findTunnelClient(name)).toThrow(message);
  });

  test('but a folder of its name', () => {
    const bin = temporaryFolder();
    mkdirSync(join(bin, 'cloudflared'));
    vi.stubEnv('PATH', bin);
    expect(() => findTunnelClient('cloudflared')).toThrow(/is not on PATH/);
  });

  test('and one that there never was: which there are', () => {
    expect(() => findTunnelClient('magic')).toThrow(/no tunnel magic. Give --tunnel cloudflared, ngrok or none/);
  });

  test('removed between finding and starting: the error says that it could not be started', async () => {
    fakes();
    const client = { ...findTunnelClient('cloudflared'), path: join(folder, 'nowhere') };
    await expect(start('cloudflared', { client })).rejects.toThrow(/could not be started: .*ENOENT/);
  });
});

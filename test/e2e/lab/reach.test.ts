/** Reaches a lab from other machines, by a tunnel or over TLS, and checks what is refused. */

import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { describe, expect, test } from 'vitest';
import { environmentWith, gone, kill, runCli, startAgent, useHome, waitFor } from '../harness.ts';
import { makeTunnels } from './fake-tunnels.ts';
import { type ServedLab, startLab, stopLab } from './start-lab.ts';

const home = useHome({ preload: 'none' });

/** As a tunnel brings it: to the port of this machine, with the name that the caller used. */
async function statusBy(lab: ServedLab, host: string): Promise<number | undefined> {
  const port = /a tunnel to http:\/\/127\.0\.0\.1:(\d+)/.exec(lab.cli.stdout())?.[1];
  const headers = { host, authorization: `Bearer ${lab.token}` };
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request({ host: '127.0.0.1', port, path: '/health', headers }, resolve).on('error', reject).end();
  });
  response.resume();
  return response.statusCode;
}

/** Processes that anybody could see the text in. */
function processesThatShow(text: string): string[] {
  return readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(text);
    } catch {
      return false;
    }
  });
}

/** In a folder of its own, a certificate for this machine that has signed itself. */
function makeCertificate(): { cert: string; key: string } {
  const folder = home.project();
  const cert = join(folder, 'cert.pem');
  const key = join(folder, 'key.pem');
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
  const names = ['-subj', '/CN=lab', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'];
  execFileSync('openssl', ['req', '-x509', ...kind, ...names, '-keyout', key, '-out', cert], { stdio: 'ignore' });
  return { cert, key };
}

describe('a tunnel', () => {
  test.each([
    ['cloudflared', 'start-1.trycloudflare.com'],
    ['ngrok', 'start-1.ngrok-free.app'],
  ])('by %s has its address printed, is answered under it, and is closed with the lab', async (name, host) => {
    const tunnels = makeTunnels(home.project());
    const env = { PATH: tunnels.PATH, NGROK_AUTHTOKEN: 'its-own', HF_TOKEN: 'hf_secret' };
    const lab = await startLab(home, ['--tunnel', name], env);
    expect(lab.url, lab.cli.stderr()).toBe(`https://${host}`);
    expect(lab.cli.stdout()).toContain(`colab_attach(endpoint="https://${host}", token="${lab.token}")`);

    expect(await statusBy(lab, host)).toBe(200);
    expect(await statusBy(lab, 'localhost')).toBe(200);
    expect(await statusBy(lab, `evil.${host}`)).toBe(403);
    expect(await statusBy(lab, 'start-2.trycloudflare.com')).toBe(403);

    const { pid, env: given } = tunnels.last();
    expect(processesThatShow(lab.token)).toEqual([]);
    expect(given).toMatchObject({ NGROK_AUTHTOKEN: 'its-own' });
    expect(JSON.stringify(given)).not.toMatch(new RegExp(`${lab.token}|hf_secret`));

    expect(await stopLab(lab)).toBe(0);
    await gone(pid);
  });

  test('that ends is reported at once and opened again, and only its new name is answered', async () => {
    const tunnels = makeTunnels(home.project());
    const lab = await startLab(home, ['--tunnel', 'cloudflared'], { PATH: tunnels.PATH });
    kill(tunnels.last().pid);
    await waitFor('a new address', () => lab.cli.stdout().includes('new address'));
    expect(lab.cli.stderr()).toMatch(
      /The tunnel is gone: cloudflared ended with SIGKILL.*Registered tunnel.*again in/s,
    );
    expect(lab.cli.stdout()).toContain(
      'colab_attach(endpoint="https://start-2.trycloudflare.com", token="the same as before")',
    );
    expect(await statusBy(lab, 'start-2.trycloudflare.com')).toBe(200);
    expect(await statusBy(lab, 'start-1.trycloudflare.com')).toBe(403);
    expect(await stopLab(lab)).toBe(0);
    await gone(tunnels.last().pid);
  });

  test('does not outlive a lab that is killed', async () => {
    const tunnels = makeTunnels(home.project());
    const lab = await startLab(home, ['--tunnel', 'cloudflared'], { PATH: tunnels.PATH });
    kill(lab.cli.child.pid ?? 0);
    await lab.cli.done;
    await gone(tunnels.last().pid);
  });

  test('that fails ends the lab with what its program said', async () => {
    const { PATH } = makeTunnels(home.project(), { before: "end(1, 'ERR failed to request quick Tunnel: 429');" });
    const args = ['lab', 'serve', '--port', '0', '--tunnel', 'cloudflared'];
    const { code, stderr, stdout } = await runCli(args, { home, cwd: home.project(), env: { PATH } });
    expect(code).toBe(69);
    expect(stderr).toMatch(/There is no tunnel: cloudflared ended with code 1.*429.*ssh -L/s);
    expect(stdout).toBe('');
  });

  test('whose program is not installed is an error before the model is loaded', async () => {
    const env = environmentWith(home, ['node', 'sh']);
    const args = ['lab', 'serve', '--model', './none', '--tunnel', 'cloudflared'];
    const { code, stderr } = await runCli(args, { home, cwd: home.project(), env });
    expect(code).toBe(69);
    expect(stderr).toMatch(/cloudflared is not on PATH.*Install it/s);
    expect(stderr).not.toContain('no folder');
  });
});

describe('a lab over TLS', () => {
  test('serves an agent that trusts the certificate, while it listens on all addresses', async () => {
    const { cert, key } = makeCertificate();
    const lab = await startLab(home, ['--host', '0.0.0.0', '--tls-cert', cert, '--tls-key', key]);
    expect(lab.url, lab.cli.stderr()).toMatch(/^https:\/\/localhost:\d+$/);
    const { url: endpoint, token } = lab;

    const agent = await startAgent({ home, cwd: home.project(), env: { NODE_EXTRA_CA_CERTS: cert } });
    const attached = await agent.call('colab_attach', { endpoint, token, session_name: 'safe' });
    expect(attached.structured, attached.text).toMatchObject({ ok: true, health: { model_id: 'demo' } });
    await agent.close();

    const doubtful = await startAgent({ home, cwd: home.project() });
    const refused = await doubtful.call('colab_attach', { endpoint, token, session_name: 'unsafe' });
    expect(refused.isError).toBe(true);
    expect(refused.text).toMatch(/certificate/);
    await doubtful.close();

    await expect(handshake(endpoint, cert, 'TLSv1.2')).resolves.toBe('TLSv1.2');
    await expect(handshake(endpoint, cert, 'TLSv1.1')).rejects.toThrow(/version|protocol/i);
    await stopLab(lab);
  });
});

function handshake(endpoint: string, cert: string, maxVersion: 'TLSv1.1' | 'TLSv1.2'): Promise<string | null> {
  const { hostname: host, port } = new URL(endpoint);
  // The old versions are only spoken with weak ciphers allowed.
  const options = { ca: readFileSync(cert), minVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const;
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port: Number(port), maxVersion, ...options }, () => {
      resolve(socket.getProtocol());
      socket.destroy();
    }).on('error', reject);
  });
}

describe('a lab does not start', () => {
  const mine = makeCertificate();
  const other = makeCertificate();
  const { PATH } = makeTunnels(home.project());

  test.each([
    [
      'on addresses that others reach without TLS',
      ['--host', '0.0.0.0'],
      /0\.0\.0\.0 is reached by others.*ssh -L.*--tunnel.*--tls-cert/s,
    ],
    ['with a certificate but no key', ['--tls-cert', mine.cert], /Give both/],
    [
      'with the key of another certificate',
      ['--tls-cert', mine.cert, '--tls-key', other.key],
      /not a certificate and its key/,
    ],
    ['with a certificate that does not exist', ['--tls-cert', 'none', '--tls-key', mine.key], /none.*ENOENT/],
    [
      'with a tunnel on an address that others reach',
      ['--tunnel', 'cloudflared', '--host', '0.0.0.0'],
      /leave out --host/,
    ],
    ['with a tunnel of an unknown kind', ['--tunnel', 'magic'], /Give --tunnel cloudflared, ngrok or none/],
  ])('%s', async (_, args, message) => {
    const { code, stderr } = await runCli(['lab', 'serve', ...args], { home, cwd: home.project(), env: { PATH } });
    expect(code).toBe(2);
    expect(stderr).toMatch(message);
  });
});

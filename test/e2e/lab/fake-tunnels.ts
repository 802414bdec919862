/** Makes programs that say what cloudflared and ngrok say and lead nowhere, because the real ones need the public internet. */

import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';

export interface FakeTunnels {
  /** With the programs in front. */
  PATH: string;
  /** How often one was started. */
  starts(): number;
  /** Of the one that was started last: its process, arguments and environment. */
  last(): { pid: number; args: string[]; env: Record<string, string> };
}

const NAME = ['cloudflared', 'ngrok'] as const;

/** Each start has another address: https://start-1.trycloudflare.com, https://start-1.ngrok-free.app and so on. `after` is what it does once it has told it. */
export function makeTunnels(folder: string, { before = '', after = 'stay()' } = {}): FakeTunnels {
  const bin = join(folder, 'tunnels');
  const note = join(folder, 'started.jsonl');
  mkdirSync(bin, { recursive: true });
  for (const name of NAME) {
    writeFileSync(join(bin, name), `#!${process.execPath}\n${source(note, before, after, SAYS[name])}`);
    chmodSync(join(bin, name), 0o755);
  }
  const notes = () => (existsSync(note) ? readFileSync(note, 'utf8').trim().split('\n') : []);
  return {
    PATH: [bin, process.env.PATH].join(delimiter),
    starts: () => notes().length,
    last: () => JSON.parse(notes().at(-1) ?? 'null'),
  };
}

function source(note: string, before: string, after: string, say: string): string {
  return `const fs = require('node:fs');
const note = ${JSON.stringify(note)};
fs.appendFileSync(note, JSON.stringify({ pid: process.pid, args: process.argv.slice(2), env: process.env }) + '\\n');
const start = fs.readFileSync(note, 'utf8').trim().split('\\n').length;
const stay = () => setInterval(() => {}, 1000);
const end = (code, text) => fs.writeSync(2, text + '\\n') && process.exit(code);
${before}
${say}
${after}
`;
}

const SAYS = {
  cloudflared: `fs.writeSync(2, [
  'INF Thank you for trying Cloudflare Tunnel. See (https://developers.cloudflare.com/cloudflare-one/connections/connect-apps)',
  'INF Requesting new quick Tunnel on trycloudflare.com...',
  'ERR Post "https://api.trycloudflare.com/tunnel": https://api.trycloudflare.com is slow, trying again',
  'INF +----------------------------------------------------------+',
  'INF |  Your quick Tunnel has been created! Visit it at (it may take some time to be reachable):  |',
  'INF |  https://start-' + start + '.trycloudflare.com                                  |',
  'INF +----------------------------------------------------------+',
  'INF Registered tunnel connection connIndex=0 location=fra01 protocol=quic',
].map((line) => '2026-01-01T00:00:00Z ' + line + '\\n').join(''));`,
  ngrok: `fs.writeSync(1, [
  { lvl: 'info', msg: 'no configuration paths supplied' },
  { lvl: 'info', msg: 'starting web service', obj: 'web', addr: '127.0.0.1:4040', url: 'https://not-this.example' },
  { lvl: 'info', msg: 'started tunnel', obj: 'tunnels', name: 'command_line', addr: 'http://' + process.argv[3], url: 'https://start-' + start + '.ngrok-free.app' },
].map((line) => JSON.stringify({ t: '2026-01-01T00:00:00+0000', ...line }) + '\\n').join(''));`,
} as const;

/** Describes the programs that make a tunnel: how each is called, where it tells its address, and how it is installed. */

import { CuvetteError } from '../../errors.ts';
import { findProgram } from '../../search-path.ts';

const TUNNELS = ['cloudflared', 'ngrok'] as const;
export type TunnelName = (typeof TUNNELS)[number];

export interface TunnelClient {
  name: TunnelName;
  /** Of the program. */
  path: string;
  /** For a tunnel to this address, as 127.0.0.1:8787. */
  args(address: string): string[];
  /** The public address, if this line of its output tells it. */
  urlIn(line: string): string | undefined;
}

interface Kind extends Omit<TunnelClient, 'name' | 'path'> {
  install: { linux: string; darwin: string };
}

const KINDS: Record<TunnelName, Kind> = {
  cloudflared: {
    args: (address) => ['tunnel', '--no-autoupdate', '--url', `http://${address}`],
    // An error names api.trycloudflare.com, which is nobody's tunnel.
    urlIn: (line) => /(?<=^|[\s|])https:\/\/(?!api\.)[a-z\d-]+\.trycloudflare\.com(?=$|[\s|])/.exec(line)?.[0],
    install: {
      linux:
        'sudo curl -fL -o /usr/local/bin/cloudflared https://github.com/cloudflare/cloudflared/releases/latest/download/cloudflared-linux-' +
        `${process.arch === 'arm64' ? 'arm64' : 'amd64'} && sudo chmod +x /usr/local/bin/cloudflared`,
      darwin: 'brew install cloudflared',
    },
  },
  ngrok: {
    args: (address) => ['http', address, '--log', 'stdout', '--log-format', 'json'],
    urlIn: urlOfNgrok,
    install: {
      linux:
        `curl -fL https://bin.equinox.io/c/bNyj1mQVY4c/ngrok-v3-stable-linux-${process.arch === 'arm64' ? 'arm64' : 'amd64'}.tgz | sudo tar xz -C /usr/local/bin` +
        '; then set NGROK_AUTHTOKEN to the token of your account',
      darwin: 'brew install ngrok; then set NGROK_AUTHTOKEN to the token of your account',
    },
  },
};

/** As it is on PATH. */
export function findTunnelClient(name: string): TunnelClient {
  const known = TUNNELS.find((one) => one === name);
  if (known === undefined)
    throw new CuvetteError('invalid_input', `There is no tunnel ${name}. Give --tunnel ${TUNNELS.join(', ')} or none.`);
  const { install, ...kind } = KINDS[known];
  const path = findProgram(known);
  if (path !== undefined) return { name: known, path, ...kind };
  throw new CuvetteError(
    'runtime_missing',
    `${known} is not on PATH, and --tunnel ${known} needs it. Install it:\n  ${install[process.platform === 'darwin' ? 'darwin' : 'linux']}`,
  );
}

function urlOfNgrok(line: string): string | undefined {
  try {
    const { msg, url } = JSON.parse(line) as { msg?: unknown; url?: unknown };
    return msg === 'started tunnel' && typeof url === 'string' && url.startsWith('https://') ? url : undefined;
  } catch {
    return undefined; // What it says before its log begins is text.
  }
}

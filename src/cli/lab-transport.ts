/** Decides how clients reach a lab, on this machine alone, over TLS or by a tunnel, before a model is loaded. */

import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { createSecureContext } from 'node:tls';
import { CuvetteError, messageOf } from '../errors.ts';
import { isLoopback } from '../loopback.ts';
import { findTunnelClient, type TunnelClient } from '../surfaces/lab/tunnel-clients.ts';

export interface LabTransport {
  tls: Tls | undefined;
  tunnel: TunnelClient | undefined;
}

export interface Tls {
  cert: Buffer;
  key: Buffer;
  /** The machine's name in the certificate. */
  name: string;
}

export interface TransportFlags {
  host: string;
  port: number;
  tunnel: string;
  cert: string | undefined;
  key: string | undefined;
}

export function chooseTransport({ host, port, tunnel, cert, key }: TransportFlags): LabTransport {
  if ((cert === undefined) !== (key === undefined))
    throw new CuvetteError('invalid_input', 'Give both, --tls-cert FILE and --tls-key FILE.');
  const isTunnelled = tunnel !== 'none';
  if (isTunnelled && (cert !== undefined || !isLoopback(host)))
    throw new CuvetteError(
      'invalid_input',
      `With --tunnel, the lab listens on this machine alone and the tunnel encrypts: leave out --host, --tls-cert and --tls-key, or --tunnel.`,
    );
  if (!isLoopback(host) && cert === undefined)
    throw new CuvetteError(
      'invalid_input',
      `Without TLS, a lab listens on this machine alone, and ${host} is reached by others, who could read the token. From elsewhere, use one of these:\n` +
        `  ssh -L ${port}:127.0.0.1:${port} HOST   on the other machine, for a lab on 127.0.0.1 here\n` +
        '  --tunnel cloudflared\n' +
        '  --tls-cert FILE --tls-key FILE',
    );
  return {
    tls: cert === undefined || key === undefined ? undefined : readTls(cert, key),
    tunnel: isTunnelled ? findTunnelClient(tunnel) : undefined,
  };
}

function readTls(certFile: string, keyFile: string): Tls {
  try {
    const cert = readFileSync(certFile);
    const key = readFileSync(keyFile);
    createSecureContext({ cert, key });
    return { cert, key, name: nameIn(new X509Certificate(cert)) };
  } catch (error) {
    throw new CuvetteError(
      'invalid_input',
      `${certFile} and ${keyFile} are not a certificate and its key, in PEM: ${messageOf(error)}.`,
      { cause: error },
    );
  }
}

function nameIn({ subjectAltName = '' }: X509Certificate): string {
  return /DNS:([^\s,*]+)/.exec(subjectAltName)?.[1] ?? /IP Address:([^\s,]+)/.exec(subjectAltName)?.[1] ?? hostname();
}

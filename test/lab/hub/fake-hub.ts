/** Serves a hub on loopback that behaves as the real one: listings, redirects of large files to another host, ranges, entity tags, refusals. */

import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

export const COMMIT = '0123456789abcdef0123456789abcdef01234567';
export const LATER = 'fedcba9876543210fedcba9876543210fedcba98';

export interface Asked {
  host: 'hub' | 'store';
  method: string;
  path: string;
  range: string | undefined;
  authorization: string | undefined;
}

export interface FakeHub {
  endpoint: string;
  asked: Asked[];
  /** Commits of repositories, and what their branches are. */
  repositories: Map<string, { branches: Record<string, string>; commits: Record<string, Record<string, Buffer>> }>;
  /** Sees every request first; answers it by itself if it returns true. */
  meddle(asked: Asked, response: ServerResponse): boolean | Promise<boolean>;
  /** Whether listings tell sizes and checksums. */
  tellsBlobs: boolean;
  close(): void;
}

/** Files that end so are large, and stored elsewhere. */
const isLarge = (name: string) => name.endsWith('.safetensors');

export async function openFakeHub(files: Record<string, Buffer | string>, id = 'org/tiny'): Promise<FakeHub> {
  const commits = { [COMMIT]: toBuffers(files) };
  const hub: FakeHub = {
    endpoint: '',
    asked: [],
    repositories: new Map([[id, { branches: { main: COMMIT }, commits }]]),
    meddle: () => false,
    tellsBlobs: true,
    close: () => {},
  };
  const store = await listen(watched(hub, 'store', (request, response) => serveStored(hub, request, response)));
  const front = await listen(watched(hub, 'hub', (request, response) => serveHub(hub, store.url, request, response)));
  hub.endpoint = front.url;
  hub.close = () => {
    front.close();
    store.close();
  };
  return hub;
}

export function toBuffers(files: Record<string, Buffer | string>): Record<string, Buffer> {
  return Object.fromEntries(Object.entries(files).map(([name, content]) => [name, Buffer.from(content)]));
}

function watched(hub: FakeHub, host: Asked['host'], next: RequestListener): RequestListener {
  return async (request, response) => {
    const { range, authorization } = request.headers;
    const asked = { host, method: request.method ?? '', path: request.url ?? '', range, authorization };
    hub.asked.push(asked);
    if (!(await hub.meddle(asked, response))) next(request, response);
  };
}

function serveHub(hub: FakeHub, store: string, request: IncomingMessage, response: ServerResponse): void {
  const url = new URL(request.url ?? '/', hub.endpoint);
  const listing = /^\/api\/models\/(.+)\/revision\/([^/]+)$/.exec(url.pathname);
  if (listing) return serveListing(hub, listing[1] ?? '', decodeURIComponent(listing[2] ?? ''), response);
  const [, id = '', revision = '', name = ''] = /^\/(.+)\/resolve\/([^/]+)\/(.+)$/.exec(url.pathname) ?? [];
  const commit = hub.repositories.get(id)?.branches[revision] ?? revision;
  const content = hub.repositories.get(id)?.commits[commit]?.[decodeURIComponent(name)];
  if (!content) return refuse(response, 404, 'EntryNotFound');
  response.setHeader('x-repo-commit', commit);
  if (!isLarge(name)) {
    response.setHeader('etag', `"${gitHash(content)}"`);
    return serveContent(content, request, response);
  }
  response.setHeader('x-linked-etag', `"${sha256(content)}"`);
  response.setHeader('x-linked-size', String(content.length));
  response.writeHead(302, { location: `${store}/${id}/${commit}/${name}?signature=secret` }).end();
}

function serveListing(hub: FakeHub, id: string, revision: string, response: ServerResponse): void {
  const repository = hub.repositories.get(id);
  // To somebody without a token, the real hub does not tell a missing repository from a private one.
  if (!repository) return refuse(response, 401, 'RepoNotFound');
  const commit = repository.branches[revision] ?? revision;
  const files = repository.commits[commit];
  if (!files) return refuse(response, 404, 'RevisionNotFound');
  const siblings = Object.entries(files).map(([rfilename, content]) => {
    if (!hub.tellsBlobs) return { rfilename };
    const lfs = isLarge(rfilename) && { lfs: { sha256: sha256(content), size: content.length, pointerSize: 130 } };
    return { rfilename, size: content.length, blobId: gitHash(content), ...lfs };
  });
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify({ id, sha: commit, siblings }));
}

function serveStored(hub: FakeHub, request: IncomingMessage, response: ServerResponse): void {
  const [, id = '', commit = '', name = ''] = /^\/(.+)\/([0-9a-f]{40})\/([^?]+)/.exec(request.url ?? '') ?? [];
  const content = hub.repositories.get(id)?.commits[commit]?.[decodeURIComponent(name)];
  if (content) serveContent(content, request, response);
  else refuse(response, 404, 'EntryNotFound');
}

export function serveContent(
  content: Buffer,
  request: { method?: string | undefined; headers?: { range?: string | undefined } },
  response: ServerResponse,
): void {
  const from = /^bytes=(\d+)-$/.exec(request.headers?.range ?? '')?.[1];
  const start = Number(from ?? 0);
  if (from !== undefined && start >= content.length) return void response.writeHead(416).end();
  const range = { 'content-range': `bytes ${start}-${content.length - 1}/${content.length}` };
  const length = { 'content-length': String(content.length - start), 'accept-ranges': 'bytes' };
  response.writeHead(from === undefined ? 200 : 206, from === undefined ? length : { ...length, ...range });
  response.end(request.method === 'HEAD' ? undefined : content.subarray(start));
}

export function refuse(response: ServerResponse, status: number, code: string): void {
  response.writeHead(status, { 'x-error-code': code, 'x-error-message': 'No.' }).end();
}

async function listen(listener: RequestListener): Promise<{ url: string; close(): void }> {
  const server = createServer(listener);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  onTestFinished(close);
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}

function sha256(content: Buffer): string {
  return createHash('sha256').update(content).digest('hex');
}

function gitHash(content: Buffer): string {
  return createHash('sha1').update(`blob ${content.length}\0`).update(content).digest('hex');
}

/** Downloads one file from the hub: resumes an earlier download, verifies the checksum, and renames the file only when it is complete. */

import { createHash, type Hash } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CuvetteError } from '../../errors.ts';
import { asStorageError } from '../../files/durable-write.ts';
import { completeFile, fileUrl, type HubFile } from './listing.ts';
import type { Repository } from './names.ts';
import { fetchFailure, type Hub, isTransient, refusedByHub, send } from './request.ts';

const TRIES = 5;
const CHUNK = 1 << 20;

export interface Download {
  hub: Hub;
  repository: Repository;
  commit: string;
  file: HubFile;
  /** Where it is to be. */
  path: string;
  signal: AbortSignal;
  /** Bytes of it that are there. */
  onBytes(count: number): void;
}

/** A partly downloaded file. */
interface Part {
  handle: FileHandle;
  size: number;
  hash: Hash | undefined;
}

export async function downloadFile(request: Download): Promise<void> {
  const { hub, repository, commit, signal } = request;
  const file = await completeFile(hub, repository, commit, request.file, signal);
  mkdirSync(dirname(request.path), { recursive: true });
  // The name has the checksum of the whole, so what is found there is never a part of something else.
  const partial = `${request.path}.${file.checksum?.value.slice(0, 16) ?? 'unchecked'}.part`;
  const isRight = (await receive(request, file, partial)) || (await receive(request, file, partial));
  if (!isRight) {
    throw new CuvetteError(
      'download_failed',
      `${file.name} of ${repository.id} arrived damaged, twice: its checksum is not ${file.checksum?.value}, as ${hub.endpoint} says. ` +
        'Nothing of it was kept. Try again, without a mirror or a proxy in between if there is one.',
    );
  }
  await rename(partial, request.path);
}

/** Downloads the file with as many connections as needed. Returns whether its checksum is right; if not, it is removed. */
async function receive(request: Download, file: HubFile, partial: string): Promise<boolean> {
  const part = await openPart(partial, file);
  try {
    await fill(request, file, part);
    await part.handle.sync();
  } finally {
    await part.handle.close();
  }
  const isRight = part.hash === undefined || part.hash.digest('hex') === file.checksum?.value;
  if (!isRight) await rm(partial, { force: true });
  return isRight;
}

async function fill(request: Download, file: HubFile, part: Part): Promise<void> {
  let failures = 0;
  while (file.size === undefined || part.size < file.size) {
    const before = part.size;
    const cut = await receiveOnce(request, file, part);
    if (cut === undefined) return;
    failures = part.size > before ? 1 : failures + 1;
    if (failures >= TRIES) {
      const { repository, hub } = request;
      throw new CuvetteError(
        'download_failed',
        `The download of ${file.name} of ${repository.id} from ${new URL(hub.endpoint).host} keeps failing (${cut}). ` +
          `${part.size} bytes are there already; the same command goes on from them.`,
      );
    }
    await sleep(request.hub.pause * 2 ** (failures - 1), undefined, { signal: request.signal });
  }
}

/** Downloads with one connection. Returns why it ended, unless the file is complete. */
async function receiveOnce(request: Download, file: HubFile, part: Part): Promise<string | undefined> {
  const { hub, repository, commit, signal } = request;
  const stalled = new AbortController();
  const timer = setTimeout(() => stalled.abort(new Error(`nothing came for ${hub.patience / 1000} s`)), hub.patience);
  try {
    const headers: Record<string, string> = part.size > 0 ? { range: `bytes=${part.size}-` } : {};
    const url = fileUrl(hub, repository, commit, file.name);
    const response = await send(hub, url, { headers, signal: AbortSignal.any([signal, stalled.signal]) });
    if (!response.ok) {
      await response.body?.cancel();
      if (response.status === 416) await startOver(part, file);
      if (response.status === 416 || isTransient(response.status)) return `it answered ${response.status}`;
      throw refusedByHub(hub, repository, commit, response);
    }
    if (part.size > 0 && !continues(response, part.size)) await startOver(part, file);
    for await (const chunk of response.body ?? []) {
      timer.refresh();
      await append(part, chunk);
      request.onBytes(part.size);
      if (file.size !== undefined && part.size > file.size) break;
    }
    if (file.size === undefined || part.size === file.size) return undefined;
    if (part.size < file.size) return 'the connection was cut';
    await startOver(part, file);
    return `it sent more than the ${file.size} bytes that the file has`;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof CuvetteError) throw error;
    return stalled.signal.aborted ? fetchFailure(stalled.signal.reason) : fetchFailure(error);
  } finally {
    clearTimeout(timer);
  }
}

/** Whether the answer begins where the part ends. A server may ignore what was asked for, and send everything. */
function continues(response: Response, from: number): boolean {
  return response.status === 206 && response.headers.get('content-range')?.startsWith(`bytes ${from}-`) === true;
}

async function openPart(partial: string, file: HubFile): Promise<Part> {
  const handle = await open(partial, 'a+', 0o644);
  const part: Part = { handle, size: 0, hash: newHash(file) };
  const { size } = await handle.stat();
  // Without a checksum, nobody could tell whether it is the beginning of the same file.
  const isOfUse = part.hash !== undefined && size <= (file.size ?? size);
  if (isOfUse) await takeUp(part, size);
  else await startOver(part, file);
  return part;
}

/** The hash goes over what an earlier download left, too. */
async function takeUp(part: Part, size: number): Promise<void> {
  const room = Buffer.allocUnsafe(Math.min(CHUNK, size));
  while (part.size < size) {
    const { bytesRead } = await part.handle.read(room, 0, Math.min(room.length, size - part.size), part.size);
    if (bytesRead === 0) return;
    part.hash?.update(room.subarray(0, bytesRead));
    part.size += bytesRead;
  }
}

async function startOver(part: Part, file: HubFile): Promise<void> {
  await part.handle.truncate(0);
  part.size = 0;
  part.hash = newHash(file);
}

async function append(part: Part, chunk: Uint8Array): Promise<void> {
  try {
    await part.handle.appendFile(chunk);
  } catch (error) {
    throw asStorageError(error);
  }
  part.hash?.update(chunk);
  part.size += chunk.length;
}

function newHash(file: HubFile): Hash | undefined {
  if (file.checksum === undefined) return undefined;
  if (file.checksum.kind === 'sha256') return createHash('sha256');
  return file.size === undefined ? undefined : createHash('sha1').update(`blob ${file.size}\0`);
}

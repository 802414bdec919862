/** Lists the files of a repository at one commit, with their sizes and checksums. */

import { readFileSync } from 'node:fs';
import * as z from 'zod';
import { CuvetteError } from '../../errors.ts';
import { isCommit, isFileName, type Repository } from './names.ts';
import { ask, type Hub, refusedByHub } from './request.ts';

const hubFile = z.object({
  name: z.string().refine(isFileName),
  size: z.int().nonnegative().optional(),
  /** Large files have a SHA-256 of their content, all others the SHA-1 that git knows them by. */
  checksum: z.object({ kind: z.enum(['sha256', 'git']), value: z.string() }).optional(),
});

const hubListing = z.object({ commit: z.string().refine(isCommit), files: z.array(hubFile) });

export type HubFile = z.infer<typeof hubFile>;
export type HubListing = z.infer<typeof hubListing>;

const answered = z.object({
  sha: z.string().refine(isCommit),
  siblings: z.array(
    z.object({
      rfilename: z.string(),
      size: z.int().nonnegative().nullish(),
      blobId: z.string().nullish(),
      lfs: z.object({ sha256: z.string(), size: z.int().nonnegative() }).nullish(),
    }),
  ),
});

/** The listing, or why the hub could not be asked. */
export async function askListing(
  hub: Hub,
  repository: Repository,
  revision: string,
  signal: AbortSignal,
): Promise<HubListing | { unreachable: string }> {
  const url = `${hub.endpoint}/api/models/${repository.id}/revision/${encodeURIComponent(revision)}?blobs=true`;
  const reply = await ask(hub, url, { signal });
  if (reply.kind === 'unreachable') return { unreachable: reply.why };
  if (!reply.response.ok) throw refusedByHub(hub, repository, revision, reply.response);
  const body: unknown = await reply.response.json().catch(() => undefined);
  const { success, data } = answered.safeParse(body);
  if (!success) {
    throw new CuvetteError(
      'download_failed',
      `${hub.endpoint} does not answer as a hub does. Check HF_ENDPOINT, and whether a proxy or a login page is in between.`,
    );
  }
  const files = data.siblings.flatMap((sibling): HubFile[] => {
    if (!isFileName(sibling.rfilename)) return [];
    const size = sibling.lfs?.size ?? sibling.size ?? undefined;
    const checksum = checksumOf(sibling.lfs?.sha256 ?? sibling.blobId ?? '');
    return [{ name: sibling.rfilename, ...(size !== undefined && { size }), ...(checksum && { checksum }) }];
  });
  return { commit: data.sha, files };
}

/** Asks for the length and the checksum of one file, of a mirror that does not list them. */
export async function completeFile(
  hub: Hub,
  repository: Repository,
  commit: string,
  file: HubFile,
  signal: AbortSignal,
): Promise<HubFile> {
  if (file.size !== undefined && file.checksum) return file;
  const reply = await ask(hub, fileUrl(hub, repository, commit, file.name), { method: 'HEAD', stay: true, signal });
  if (reply.kind === 'unreachable' || reply.response.status > 399) return file;
  const { headers } = reply.response;
  const length = headers.get('x-linked-size') ?? (reply.response.ok ? headers.get('content-length') : null);
  const size = file.size ?? (length === null ? undefined : Number(length));
  const checksum = file.checksum ?? checksumOf(headers.get('x-linked-etag') ?? headers.get('etag') ?? '');
  return { name: file.name, ...(size !== undefined && { size }), ...(checksum && { checksum }) };
}

export function fileUrl(hub: Hub, repository: Repository, commit: string, file: string): string {
  return `${hub.endpoint}/${repository.id}/resolve/${commit}/${file.split('/').map(encodeURIComponent).join('/')}`;
}

export function readListing(path: string): HubListing | undefined {
  try {
    return hubListing.safeParse(JSON.parse(readFileSync(path, 'utf8'))).data;
  } catch {
    return undefined;
  }
}

/** The checksum in an entity tag, whose kind follows from its length. */
function checksumOf(tag: string): HubFile['checksum'] {
  const value = tag.replace(/^W\//, '').replaceAll('"', '').toLowerCase();
  if (/^[0-9a-f]{64}$/.test(value)) return { kind: 'sha256', value };
  if (/^[0-9a-f]{40}$/.test(value)) return { kind: 'git', value };
  return undefined;
}

/** Answers a download: with headers that keep a browser from running the file, ranges, and 304 for a file that the client has. */

import type { FileHandle } from 'node:fs/promises';
import { harmlessType } from '../../files/content-type.ts';
import type { StoredFile } from '../../files/file-store.ts';
import { rangeOf, streamRange } from '../../files/range.ts';

/** What a page may do that a file is shown as: nothing, not even as part of this site. */
const SHOWN_HARMLESSLY =
  "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'";

export interface DownloadedFile extends Pick<StoredFile, 'name' | 'contentType' | 'etag' | 'createdAt'> {
  /** Shown by the browser as what it is, in a sandbox, and not saved. */
  isShown?: boolean;
}

/** The etag identifies the bytes. */
export async function downloadResponse(request: Request, file: DownloadedFile, handle: FileHandle): Promise<Response> {
  const { size } = await handle.stat();
  const etag = `"${file.etag}"`;
  const headers = new Headers({
    'Accept-Ranges': 'bytes',
    'Cache-Control': 'private, no-cache',
    'Content-Disposition': `${file.isShown ? 'inline' : 'attachment'}; filename*=UTF-8''${encoded(file.name)}`,
    'Content-Security-Policy': file.isShown ? SHOWN_HARMLESSLY : 'sandbox',
    'Content-Type': file.isShown ? file.contentType : harmlessType(file.contentType),
    ETag: etag,
    'Last-Modified': new Date(file.createdAt).toUTCString(),
    'X-Content-Type-Options': 'nosniff',
    ...(file.isShown && { 'Cross-Origin-Resource-Policy': 'same-origin' }),
  });
  const withoutBody = async (status: number) => {
    await handle.close();
    return new Response(null, { status, headers });
  };

  const isKnown = (request.headers.get('if-none-match') ?? '')
    .split(',')
    .some((known) => known.trim() === '*' || known.trim().replace(/^W\//, '') === etag);
  if (isKnown) return withoutBody(304);

  const condition = request.headers.get('if-range');
  const isSame = condition === null || condition === etag || condition === headers.get('last-modified');
  const range = isSame ? rangeOf(request.headers.get('range') ?? '', size) : 'all';
  if (range === 'none') {
    headers.set('Content-Range', `bytes */${size}`);
    return withoutBody(416);
  }
  const { start, end } = range === 'all' ? { start: 0, end: size } : range;
  const status = range === 'all' ? 200 : 206;
  if (status === 206) headers.set('Content-Range', `bytes ${start}-${end - 1}/${size}`);
  headers.set('Content-Length', String(end - start));
  if (request.method === 'HEAD' || start === end) return withoutBody(status);
  return new Response(streamRange(handle, { start, end }), { status, headers });
}

/** Encodes the last part of a name for a header, as RFC 8187 asks. */
function encoded(name: string): string {
  const last = name.slice(name.lastIndexOf('/') + 1);
  return encodeURIComponent(last).replace(
    /['()*!]/g,
    (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** Finds the media type of a file: what its sender says if that is a type at all, else what its name suggests. */

import { getMimeType } from 'hono/utils/mime';

const ANYTHING = 'application/octet-stream';
const TYPE = /^[a-z0-9][\w.+-]{0,63}\/[a-z0-9][\w.+-]{0,127}$/;
const OFFICE = 'application/vnd.openxmlformats-officedocument';

/** What people work with here, before what the web is made of: `.ts` is no video. */
const OURS = {
  docx: `${OFFICE}.wordprocessingml.document`,
  ipynb: 'application/x-ipynb+json',
  md: 'text/markdown',
  pptx: `${OFFICE}.presentationml.presentation`,
  py: 'text/x-python',
  ts: 'text/typescript',
  xlsx: `${OFFICE}.spreadsheetml.sheet`,
};

export function contentTypeOf(name: string, said?: string): string {
  const given = said?.split(';')[0]?.trim().toLowerCase() ?? '';
  if (given !== ANYTHING && TYPE.test(given)) return given;
  return getMimeType(name, OURS) ?? getMimeType(name)?.split(';')[0] ?? ANYTHING;
}

/** The type to serve a file with: never one that a browser would run as part of this site. */
export function harmlessType(contentType: string): string {
  return /html|script|svg|[/+]xml$/.test(contentType) ? ANYTHING : contentType;
}

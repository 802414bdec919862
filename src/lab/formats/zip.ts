/** Reads ZIP archives as numpy and torch write them: entries stored or deflated, ZIP64 too. Validates what an archive says of itself before using it. */

import { crc32, inflateRawSync } from 'node:zlib';
import { CuvetteError, messageOf } from '../../errors.ts';
import { missing } from '../core/missing.ts';
import { type FileBytes, openFileBytes } from './file-bytes.ts';

export interface ZipEntry {
  name: string;
  /** Of its content. */
  size: number;
}

export interface ZipFile {
  path: string;
  entries: ReadonlyMap<string, ZipEntry>;
  /** Fills the target from byte `position` of an entry on. A deflated entry is inflated whole, and kept until another one is read. */
  read(entry: ZipEntry, target: Uint8Array, position: number): void;
  close(): void;
}

/** One line of the archive's table of contents. */
interface Listing extends ZipEntry {
  deflated: boolean;
  storedSize: number;
  header: number;
  checksum: number;
}

const LARGEST_TABLE = 1 << 26;
/** Weights hardly compress: an archive with a higher ratio is a ZIP bomb. */
const LARGEST_INFLATION = 100;
const SMALL_ENTRY = 1 << 20;

export function openZip(path: string): ZipFile {
  const file = openFileBytes(path);
  try {
    const listings = readTable(file);
    const starts = new Map(listings.map((listing) => [listing.name, findData(file, listing)]));
    checkThatNothingOverlaps(file, listings, starts);
    return { path, entries: new Map(listings.map((entry) => [entry.name, entry])), ...reader(file, listings, starts) };
  } catch (error) {
    file.close();
    throw error;
  }
}

function reader(file: FileBytes, listings: Listing[], starts: Map<string, number>): Pick<ZipFile, 'read' | 'close'> {
  const byName = new Map(listings.map((listing) => [listing.name, listing]));
  let inflated: { name: string; content: Uint8Array } | undefined;
  return { read, close: file.close };

  function read(entry: ZipEntry, target: Uint8Array, position: number): void {
    const listing = byName.get(entry.name);
    const start = starts.get(entry.name);
    if (listing === undefined || start === undefined || position + target.length > listing.size) {
      throw new Error(`Entry ${entry.name} has no ${target.length} bytes from ${position} on.`);
    }
    if (!listing.deflated) {
      file.read(target, start + position);
      return;
    }
    if (inflated?.name !== entry.name) inflated = { name: entry.name, content: inflate(file, listing, start) };
    target.set(inflated.content.subarray(position, position + target.length));
  }
}

function inflate(file: FileBytes, listing: Listing, start: number): Uint8Array {
  const compressed = new Uint8Array(listing.storedSize);
  file.read(compressed, start);
  const content = inflateAtMost(file, listing, compressed);
  if (content.length !== listing.size || crc32(content) !== listing.checksum) {
    throw corrupt(file, `entry ${listing.name} does not hold what the table of contents says`);
  }
  return content;
}

function inflateAtMost(file: FileBytes, listing: Listing, compressed: Uint8Array): Uint8Array {
  try {
    return inflateRawSync(compressed, { maxOutputLength: Math.max(1, listing.size) });
  } catch (error) {
    throw corrupt(file, `entry ${listing.name} cannot be inflated (${messageOf(error)})`, error);
  }
}

// The table of contents.

/** A ZIP file is read from its end, where a fixed record, after it at most a comment, tells where the table is. */
function readTable(file: FileBytes): Listing[] {
  const { start, length, count } = findTable(file);
  if (start + length > file.length || length > LARGEST_TABLE) {
    throw corrupt(file, `its table of contents would be ${length} bytes from byte ${start} on`);
  }
  const table = Buffer.alloc(length);
  file.read(table, start);
  const listings: Listing[] = [];
  const names = new Set<string>();
  for (let at = 0; at < length; ) {
    if (at + 46 > length || table.readUInt32LE(at) !== 0x02014b50)
      throw corrupt(file, 'its table of contents is broken');
    const end = at + 46 + table.readUInt16LE(at + 28) + table.readUInt16LE(at + 30) + table.readUInt16LE(at + 32);
    if (end > length) throw corrupt(file, 'its table of contents is broken');
    const listing = parseListing(file, table.subarray(at, end));
    if (names.has(listing.name)) throw corrupt(file, `it has two entries ${listing.name}`);
    names.add(listing.name);
    listings.push(listing);
    at = end;
  }
  if (listings.length !== count) throw corrupt(file, `it has ${listings.length} entries instead of ${count}`);
  return listings;
}

function findTable(file: FileBytes): { start: number; length: number; count: number } {
  const tail = Buffer.alloc(Math.min(file.length, 22 + 0xffff));
  file.read(tail, file.length - tail.length);
  for (let at = tail.length - 22; at >= 0; at--) {
    if (tail.readUInt32LE(at) !== 0x06054b50 || at + 22 + tail.readUInt16LE(at + 20) !== tail.length) continue;
    const isLarge = at >= 20 && tail.readUInt32LE(at - 20) === 0x07064b50;
    if (isLarge) return readLargeRecord(file, wholeNumber(file, tail, at - 12));
    return { count: tail.readUInt16LE(at + 10), length: tail.readUInt32LE(at + 12), start: tail.readUInt32LE(at + 16) };
  }
  throw corrupt(file, 'it has no table of contents at its end, so it is cut off or no ZIP archive at all');
}

function readLargeRecord(file: FileBytes, position: number): { start: number; length: number; count: number } {
  if (position + 56 > file.length) throw corrupt(file, 'its ZIP64 record lies outside of the file');
  const record = Buffer.alloc(56);
  file.read(record, position);
  if (record.readUInt32LE(0) !== 0x06064b50) throw corrupt(file, 'its ZIP64 record is missing');
  return {
    count: wholeNumber(file, record, 32),
    length: wholeNumber(file, record, 40),
    start: wholeNumber(file, record, 48),
  };
}

function parseListing(file: FileBytes, record: Buffer): Listing {
  const nameEnd = 46 + record.readUInt16LE(28);
  const name = record.toString('utf8', 46, nameEnd);
  const method = record.readUInt16LE(10);
  if (record.readUInt16LE(8) & 1) throw corrupt(file, `entry ${name} is encrypted`);
  if (method !== 0 && method !== 8) {
    throw corrupt(file, `entry ${name} is compressed with method ${method}; only deflate is read`);
  }
  const large = largeNumbers(file, record.subarray(nameEnd, nameEnd + record.readUInt16LE(30)));
  // Each that does not fit 32 bits stands in the extra field, in this order.
  const size = large(record.readUInt32LE(24));
  const storedSize = large(record.readUInt32LE(20));
  const header = large(record.readUInt32LE(42));
  if (method === 0 && size !== storedSize) throw corrupt(file, `entry ${name} has two different sizes`);
  if (size > SMALL_ENTRY && size > storedSize * LARGEST_INFLATION) {
    throw corrupt(file, `entry ${name} would inflate from ${storedSize} bytes to ${size}; save it without compression`);
  }
  return { name, size, storedSize, header, deflated: method === 8, checksum: record.readUInt32LE(16) };
}

/** Gives numbers as they stand, but those that are too large from the ZIP64 extra field. */
function largeNumbers(file: FileBytes, extra: Buffer): (value: number) => number {
  let field: Buffer = Buffer.alloc(0);
  for (let at = 0; at + 4 <= extra.length; at += 4 + extra.readUInt16LE(at + 2)) {
    if (extra.readUInt16LE(at) === 1) field = extra.subarray(at + 4, at + 4 + extra.readUInt16LE(at + 2));
  }
  let next = 0;
  return (value) => {
    if (value !== 0xffffffff) return value;
    if (next + 8 > field.length) throw corrupt(file, 'its table of contents lacks a large number');
    next += 8;
    return wholeNumber(file, field, next - 8);
  };
}

function wholeNumber(file: FileBytes, bytes: Buffer, at: number): number {
  const value = Number(bytes.readBigUInt64LE(at));
  if (!Number.isSafeInteger(value)) throw corrupt(file, `it has the impossible number ${value}`);
  return value;
}

// The data.

/** Each entry has a header of its own before its data, which may be of another length than the table says. */
function findData(file: FileBytes, listing: Listing): number {
  if (listing.header + 30 > file.length) throw corrupt(file, `entry ${listing.name} begins outside of the file`);
  const header = Buffer.alloc(30);
  file.read(header, listing.header);
  if (header.readUInt32LE(0) !== 0x04034b50) throw corrupt(file, `entry ${listing.name} has no header`);
  const start = listing.header + 30 + header.readUInt16LE(26) + header.readUInt16LE(28);
  if (start + listing.storedSize > file.length) throw corrupt(file, `entry ${listing.name} ends outside of the file`);
  return start;
}

/** Overlapping entries are another kind of ZIP bomb. */
function checkThatNothingOverlaps(file: FileBytes, listings: Listing[], starts: Map<string, number>): void {
  let covered = 0;
  for (const listing of [...listings].sort((a, b) => a.header - b.header)) {
    if (listing.header < covered) throw corrupt(file, `entry ${listing.name} overlaps the one before it`);
    covered = (starts.get(listing.name) ?? missing('start of entry', listing.name)) + listing.storedSize;
  }
}

function corrupt(file: FileBytes, what: string, cause?: unknown): CuvetteError {
  return new CuvetteError(
    'bad_model',
    `${file.path} cannot be read: ${what}. Fetch the file again, or save it again.`,
    {
      cause,
    },
  );
}

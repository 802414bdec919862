/** Writes ZIP archives, also invalid ones. */

import { crc32, deflateRawSync } from 'node:zlib';

export interface EntryToWrite {
  name: string;
  content: Uint8Array;
  deflated?: boolean;
  /** What the table of contents says instead of the truth. */
  says?: { size?: number; storedSize?: number; method?: number; flags?: number; header?: number; checksum?: number };
}

export function writeZip(
  entries: EntryToWrite[],
  says: { count?: number; start?: number; comment?: string } = {},
): Buffer {
  const parts: Buffer[] = [];
  const table: Buffer[] = [];
  let at = 0;
  for (const entry of entries) {
    const { local, central } = describe(entry, at);
    const stored = storedBytes(entry);
    parts.push(local, Buffer.from(entry.name), stored);
    table.push(central, Buffer.from(entry.name));
    at += local.length + Buffer.byteLength(entry.name) + stored.length;
  }
  const tableBytes = Buffer.concat(table);
  const comment = Buffer.from(says.comment ?? '');
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(entries.length, 8);
  end.writeUInt16LE(says.count ?? entries.length, 10);
  end.writeUInt32LE(tableBytes.length, 12);
  end.writeUInt32LE(says.start ?? at, 16);
  end.writeUInt16LE(comment.length, 20);
  return Buffer.concat([...parts, tableBytes, end, comment]);
}

function storedBytes({ content, deflated }: EntryToWrite): Buffer {
  return deflated ? deflateRawSync(content) : Buffer.from(content);
}

function describe(entry: EntryToWrite, at: number): { local: Buffer; central: Buffer } {
  const { name, content, deflated, says = {} } = entry;
  const length = Buffer.byteLength(name);
  const method = says.method ?? (deflated ? 8 : 0);
  const local = Buffer.alloc(30);
  local.writeUInt32LE(0x04034b50, 0);
  local.writeUInt16LE(method, 8);
  local.writeUInt16LE(length, 26);
  const central = Buffer.alloc(46);
  central.writeUInt32LE(0x02014b50, 0);
  central.writeUInt16LE(says.flags ?? 0, 8);
  central.writeUInt16LE(method, 10);
  central.writeUInt32LE(says.checksum ?? crc32(content), 16);
  central.writeUInt32LE(says.storedSize ?? storedBytes(entry).length, 20);
  central.writeUInt32LE(says.size ?? content.length, 24);
  central.writeUInt16LE(length, 28);
  central.writeUInt32LE(says.header ?? at, 42);
  return { local, central };
}

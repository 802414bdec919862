/** Writes the activations of a capture row by row to a safetensors file, which may be larger than memory. */

import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { asStorageError } from '../../files/durable-write.ts';
import { float32Bytes } from '../core/manifest.ts';

export interface ActivationsWriter {
  /** The next rows of one tensor. */
  append(tensor: string, rows: Float32Array): Promise<void>;
  /** Brings everything to the disk; says what its content hashes to. */
  finish(): Promise<string>;
  close(): Promise<void>;
}

/** Every tensor has as many rows, of the same width. */
export async function createActivationsWriter(
  path: string,
  tensors: readonly string[],
  shape: { rows: number; width: number },
): Promise<ActivationsWriter> {
  const size = shape.rows * shape.width * Float32Array.BYTES_PER_ELEMENT;
  const header = headerOf(tensors, [shape.rows, shape.width], size);
  const handle = await open(path, 'wx', 0o600);
  const places = new Map(
    tensors.map((name, i) => [name, { at: header.length + i * size, hash: createHash('sha256') }]),
  );
  await writeAll(handle, header, 0).catch(async (error: unknown) => {
    await handle.close();
    throw error;
  });
  return {
    async append(tensor, rows) {
      const place = places.get(tensor);
      if (!place) throw new Error(`The file has no tensor ${tensor}.`);
      const bytes = float32Bytes(rows);
      place.hash.update(bytes);
      const { at } = place;
      place.at += bytes.length;
      await writeAll(handle, bytes, at);
    },
    async finish() {
      await handle.sync();
      const whole = createHash('sha256');
      for (const [name, { hash }] of places) whole.update(name).update(hash.digest());
      return whole.digest('hex');
    },
    close: () => handle.close(),
  };
}

function headerOf(tensors: readonly string[], shape: number[], size: number): Uint8Array {
  const entries = tensors.map((name, i) => [name, { dtype: 'F32', shape, data_offsets: [i * size, (i + 1) * size] }]);
  const json = Buffer.from(JSON.stringify(Object.fromEntries(entries)));
  const padding = (8 - (json.length % 8)) % 8;
  const header = Buffer.alloc(8 + json.length + padding, ' ');
  header.writeBigUInt64LE(BigInt(json.length + padding));
  json.copy(header, 8);
  return header;
}

async function writeAll(handle: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  try {
    for (let done = 0; done < bytes.length; ) {
      const { bytesWritten } = await handle.write(bytes, done, bytes.length - done, position + done);
      done += bytesWritten;
    }
  } catch (error) {
    throw asStorageError(error);
  }
}

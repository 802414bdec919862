/**
 * Encodes and decodes messages with tensors: a length, a JSON header with the type and shape of each tensor, then their numbers, little-endian.
 * python/cuvette_torch/wire.py is the other side.
 */

import * as z from 'zod';

export type Numbers = Float32Array<ArrayBuffer> | Float64Array<ArrayBuffer> | Int32Array<ArrayBuffer>;

export interface Tensor {
  shape: readonly number[];
  data: Float32Array | Float64Array | Int32Array;
}

export interface TensorFrame {
  header: unknown;
  tensors: Numbers[];
}

const Described = z.object({
  tensors: z.array(z.tuple([z.enum(['float32', 'float64', 'int32']), z.array(z.number().int().nonnegative())])),
});
/** Bytes; a longer one makes no sense. */
const LONGEST_HEADER = 2 ** 28;

/** What is to be written, in pieces. */
export function encodeFrame(header: object, tensors: readonly Tensor[]): Uint8Array[] {
  const described = tensors.map(({ data, shape }) => [kindOf(data), shape]);
  const json = Buffer.from(JSON.stringify({ ...header, tensors: described }));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(json.length);
  const pieces = tensors.map(({ data }) => new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
  return [length, json, ...pieces.filter((piece) => piece.length > 0)];
}

/** Takes what comes in, in whatever pieces; calls back with each whole frame. Throws for what is no frame. */
export function createFrameReader(onFrame: (frame: TensorFrame) => void): (chunk: Uint8Array) => void {
  let missing: Uint8Array = new Uint8Array(4);
  let filled = 0;
  let whenFilled = readLength;
  let header: unknown;
  let tensors: Numbers[] = [];

  return (chunk) => {
    for (let offset = 0; offset < chunk.length; ) {
      const piece = chunk.subarray(offset, offset + missing.length - filled);
      missing.set(piece, filled);
      filled += piece.length;
      offset += piece.length;
      if (filled === missing.length) whenFilled(missing);
    }
  };

  function expect(bytes: Uint8Array, then: (bytes: Uint8Array) => void): void {
    missing = bytes;
    filled = 0;
    whenFilled = then;
  }

  function readLength(bytes: Uint8Array): void {
    const length = Buffer.from(bytes).readUInt32LE();
    if (length === 0 || length > LONGEST_HEADER) throw new Error(`A header of ${length} bytes makes no sense.`);
    expect(new Uint8Array(length), readHeader);
  }

  function readHeader(bytes: Uint8Array): void {
    header = JSON.parse(Buffer.from(bytes).toString('utf8'));
    tensors = Described.parse(header).tensors.map(([kind, shape]) => allocate(kind, shape));
    readTensors(tensors.filter(({ length }) => length > 0));
  }

  function readTensors([next, ...rest]: Numbers[]): void {
    if (next) return expect(new Uint8Array(next.buffer), () => readTensors(rest));
    const frame = { header, tensors };
    expect(new Uint8Array(4), readLength);
    onFrame(frame);
  }
}

function kindOf(data: Tensor['data']): string {
  if (data instanceof Float32Array) return 'float32';
  return data instanceof Float64Array ? 'float64' : 'int32';
}

function allocate(kind: 'float32' | 'float64' | 'int32', shape: readonly number[]): Numbers {
  const count = shape.reduce((product, size) => product * size, 1);
  if (kind === 'float32') return new Float32Array(count);
  return kind === 'float64' ? new Float64Array(count) : new Int32Array(count);
}

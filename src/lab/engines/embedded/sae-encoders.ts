/** Holds encoders of SAEs in the kernel's memory, and evicts the least recently used. */

import type { Sae } from '../../core/sae.ts';
import { activateSae, prepareSaeInput } from '../../sae/encode.ts';
import { type Heap, roundUp } from './heap.ts';
import { packInPlace } from './packed-weights.ts';
import { type KernelProgram, PANEL, type PackedMatrix } from './program.ts';

export interface SaeEncoders {
  /** Whether an encoder is there. */
  has(number: number): boolean;
  /** Copies an encoder to the kernel's memory; may evict others. */
  add(number: number, sae: Sae): void;
  /** Activations (count × width) to features (count × features). */
  encode(number: number, rows: Float32Array): Float32Array;
}

interface Held {
  /** Without the encoder's numbers, which are in the kernel's memory only. */
  sae: Sae;
  encoder: PackedMatrix;
}

/** Bytes of encoders that stay, beside the last one. */
const ROOM = 256 * 2 ** 20;
/** Bytes of products in memory at a time. */
const PRODUCTS_ROOM = 32 * 2 ** 20;

export function createSaeEncoders(heap: Heap, program: KernelProgram, checkAborted: () => void): SaeEncoders {
  const held = new Map<number, Held>();

  return {
    has: (number) => held.has(number),

    add(number, sae) {
      evict(ROOM - sae.encoder.length * 4);
      const { features: outputs, width: inputs } = sae;
      const address = heap.allocate(roundUp(outputs, PANEL) * inputs * 4);
      heap.floats(address, outputs * inputs).set(sae.encoder);
      packInPlace(heap, address, outputs, inputs);
      const encoder = { address, bias: 0, outputs, inputs };
      held.set(number, { sae: { ...sae, encoder: new Float32Array() }, encoder });
    },

    encode(number, rows) {
      const one = held.get(number);
      if (!one) throw new Error(`There is no encoder ${number}.`);
      held.delete(number);
      held.set(number, one);
      return activateSae(one.sae, products(one.encoder, prepareSaeInput(one.sae, rows)));
    },
  };

  function products(encoder: PackedMatrix, rows: Float32Array): Float32Array {
    const { inputs, outputs } = encoder;
    const count = rows.length / inputs;
    const result = new Float32Array(count * outputs);
    const stride = roundUp(outputs, PANEL) * 4;
    const most = Math.max(1, Math.min(count, Math.floor(PRODUCTS_ROOM / stride)));
    const from = { address: heap.allocate(most * inputs * 4), stride: inputs * 4 };
    const to = { address: heap.allocate(most * stride), stride };
    try {
      for (let first = 0; first < count; first += most) {
        checkAborted();
        const some = Math.min(most, count - first);
        heap.floats(from.address, some * inputs).set(rows.subarray(first * inputs, (first + some) * inputs));
        program.multiply(from, some, encoder, to);
        program.run();
        for (let i = 0; i < some; i++) result.set(heap.floats(to.address + i * stride, outputs), (first + i) * outputs);
      }
      return result;
    } finally {
      heap.free(from.address);
      heap.free(to.address);
    }
  }

  /** Evicts the least recently used encoders until the rest fits. */
  function evict(room: number): void {
    let bytes = [...held.values()].reduce((sum, { encoder }) => sum + encoder.inputs * encoder.outputs * 4, 0);
    for (const [number, { encoder }] of held) {
      if (bytes <= room) return;
      bytes -= encoder.inputs * encoder.outputs * 4;
      heap.free(encoder.address);
      held.delete(number);
    }
  }
}

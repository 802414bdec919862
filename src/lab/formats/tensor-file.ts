/** Defines what all files of tensors have in common for their readers. */

export interface TensorFile {
  path: string;
  tensors: ReadonlyMap<string, StoredTensor>;
  /** Reads as many numbers as the target holds, from number `first` of the tensor on, in the order in which the file has them. */
  into(name: string, target: Float32Array, options?: { first?: number }): void;
  close(): void;
}

export interface StoredTensor {
  shape: readonly number[];
  /** Set for a matrix that the file has column after column. Everything else is read row after row. */
  columnMajor?: boolean;
}

export function elementsOf(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}

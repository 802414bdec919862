/** The part of WebAssembly's JavaScript interface that the engine uses; TypeScript has it among the types of browsers only. */

declare namespace WebAssembly {
  class Module {
    constructor(bytes: Uint8Array<ArrayBuffer>);
  }

  class Memory {
    constructor(description: { initial: number; maximum: number; shared: true });
    readonly buffer: SharedArrayBuffer;
    grow(pages: number): number;
  }

  class Instance {
    constructor(module: Module, imports: { env: { memory: Memory } });
    readonly exports: Record<string, unknown>;
  }

  function validate(bytes: Uint8Array<ArrayBuffer>): boolean;
}

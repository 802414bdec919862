/**
 * Builds the embedded engine's kernel: AssemblyScript to WebAssembly, twice from the same source, without and with relaxed SIMD,
 * into dist/kernel-simd.wasm and dist/kernel-relaxed.wasm. Run it after the bundler, which empties dist/.
 */

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import asc from 'assemblyscript/asc';

const root = resolve(import.meta.dirname, '..');
const sources = join(root, 'src', 'lab', 'engines', 'embedded', 'kernel');
const output = join(root, 'dist');
const DATA_SECTION = 11;

mkdirSync(output, { recursive: true });
await build('kernel-simd.wasm', []);
await build('kernel-relaxed.wasm', ['--enable', 'relaxed-simd']);

async function build(name, features) {
  const { error, stderr } = await asc.main(
    [
      'kernel.ts',
      ...['--outFile', name],
      ...['--optimizeLevel', '3', '--shrinkLevel', '0', '--converge', '--noAssert'],
      ...['--runtime', 'stub'],
      ...['--importMemory', '--sharedMemory', '--initialMemory', '1', '--maximumMemory', '65536'],
      ...['--enable', 'threads', '--enable', 'simd', ...features],
    ],
    { readFile, writeFile, listFiles: () => [] },
  );
  if (error) {
    process.stderr.write(stderr.toString());
    process.exit(1);
  }
}

/** Data of its own would be written over what is in memory, each time a thread begins. */
function refuseData(binary) {
  const { length } = binary;
  let at = 8;
  while (at < length) {
    const section = binary[at++];
    if (section === DATA_SECTION) throw new Error('The kernel must have no data of its own, such as tables.');
    let size = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = binary[at++];
      size |= (byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    at += size;
  }
}

function writeFile(name, binary) {
  refuseData(binary);
  writeFileSync(join(output, name), binary);
}

/** The sources are called .as, so that no tool for TypeScript takes them for that; the compiler asks for .ts. */
function readFile(name) {
  try {
    return readFileSync(join(sources, name.replace(/\.ts$/, '.as')), 'utf8');
  } catch {
    return null;
  }
}

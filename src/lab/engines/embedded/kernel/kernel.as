/** The kernel: what threads of the embedded engine compute with. It allocates nothing: all memory is laid out by TypeScript. */

export { help, runProgram } from './schedule';

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { typescript } from '../../../src/interpreters/process/typescript.ts';
import { isMissing, openSession } from './run-plan.ts';

const skip = await isMissing(typescript);
const run = (code: string, args: string[] = []) => openSession(typescript).run(code, { args });

describe.skipIf(skip)('a TypeScript program', () => {
  it('runs without its types', async () => {
    const code = `interface Point { x: number; y?: string }
      type Pair<T> = [T, T];
      declare const nothing: string;
      abstract class Shape<T extends Point> { protected readonly at!: T; abstract area(): number; }
      const f = <T,>(p: Pair<T>): T => p[0] as T;
      console.log(f([1, 2] satisfies Pair<number>), process.argv.slice(2)!, typeof Shape);`;
    expect(await run(code, ['a b'])).toMatchObject({ stdout: "1 [ 'a b' ] function\n", stderr: '', exitCode: 0 });
  });

  it('runs with what is more than types: enums, namespaces, parameter properties, casts in angle brackets', async () => {
    const code = `enum Color { Red = 'r', Green = 'g' }
      const enum Size { Small = 1 }
      namespace Tools { export const twice = (n: number) => n * 2; }
      class Person { constructor(private readonly name: string) {} greet() { return 'I am ' + this.name; } }
      console.log(Color.Green, Size.Small, Tools.twice(<number>4), new Person('Ada').greet());`;
    expect(await run(code)).toMatchObject({ stdout: 'g 1 8 I am Ada\n', stderr: '', exitCode: 0 });
  });

  it('may be an ES module or CommonJS, as JavaScript', async () => {
    const session = openSession(typescript);
    writeFileSync(join(session.workspace, 'old.cjs'), "module.exports = { kind: 'CommonJS' };");
    writeFileSync(join(session.workspace, 'new.mjs'), "export const kind = 'ESM';");
    const programs = [
      ["const old: any = require('./old.cjs'); console.log(old.kind, typeof __dirname)", 'CommonJS string\n'],
      ["import { kind } from './new.mjs'; const k: string = kind; console.log(k)", 'ESM\n'],
      ["const m: any = await import('./new.mjs'); console.log(m.kind)", 'ESM\n'],
      ["import old = require('./old.cjs'); console.log(old.kind)", 'CommonJS\n'],
      [
        "import old = require('./old.cjs'); import { kind } from './new.mjs'; console.log(old.kind, kind)",
        'CommonJS ESM\n',
      ],
      ["import fs from 'node:fs'; export const x: number = 1; console.log(typeof fs.statSync)", 'function\n'],
      ['enum E { A } export default E; console.log(await Promise.resolve(E.A))', '0\n'],
      ['const x: number = 1; export = x; console.log(x)', '1\n'],
    ];
    for (const [code = '', stdout] of programs) {
      expect(await session.run(code), code).toMatchObject({ stdout, stderr: '', exitCode: 0 });
    }
  });

  it('may import types, marked as such or not', async () => {
    const programs = [
      "import type { Stats } from 'node:fs'; import { type PathLike, statSync } from 'node:fs';",
      "import { Stats, PathLike, statSync } from 'node:fs';",
      "import type { Nothing } from './nosuch'; import { type Other } from './nosuch'; import { statSync } from 'fs';",
      "import { Nothing } from './nosuch'; import fs, { PathLike } from 'fs'; const { statSync } = fs;",
    ];
    for (const imports of programs) {
      const code = `${imports}\nconst f = (p: string): boolean => statSync(p).isDirectory();\nconsole.log(f('/'));`;
      expect(await run(code), imports).toMatchObject({ stdout: 'true\n', stderr: '', exitCode: 0 });
    }
  });

  it('names its own line and column in errors', async () => {
    const { stderr, exitCode } = await run(
      "type T = string;\n\nconst f = (x: T): never => { throw new Error(x); };\nf('no luck');",
    );
    expect(stderr).toMatch(/at f \(.*\.js:3:36\)/);
    expect(exitCode).toBe(1);
  });

  it('names its own line and column also if it was written anew', async () => {
    const code =
      "enum E {\n  A,\n}\n\nconst f = (x: string): never => {\n  throw new Error(x + E.A);\n};\nf('no luck');";
    const { stderr, exitCode } = await run(code);
    expect(stderr).toMatch(/main\.ts:6\n {2}throw new Error\(x \+ E\.A\);/);
    expect(stderr).toMatch(/at f \(.*main\.ts:6:9\)/);
    expect(exitCode).toBe(1);
  });

  it('that cannot be parsed is refused, with the place', async () => {
    const { plan, stderr, exitCode } = await run('const a: number = 1;\nconst é = "ü" +;\n');
    expect(plan).toMatchObject({ steps: [], own: [] });
    expect(stderr).toBe(
      'main.ts:2:16 - error: Expression expected\n\nconst a: number = 1;\nconst é = "ü" +;\n               ^\n',
    );
    expect(exitCode).toBe(1);
  });

  it('is not checked for types', async () => {
    expect((await run("const a: number = 'text'; console.log(a);")).stdout).toBe('text\n');
  });

  it('that is nested too deeply or too large is refused, and the next one runs', async () => {
    expect((await run(`x = ${'('.repeat(200_000)}`)).stderr).toMatch(/^main\.ts: error|^main\.ts - error/);
    expect((await run(`/* ${'x'.repeat(2 * 1024 ** 2)} */`)).stderr).toContain('Put data into files of the workspace');
    expect((await run('console.log(1 as number)')).stdout).toBe('1\n');
  });

  it('with decorators is told so by Node, with the line', async () => {
    const { stderr } = await run('function d(t: any) {}\n\n@d\nclass A {}\n');
    expect(stderr).toMatch(/js:3\n@d\n\^\n\nSyntaxError: Invalid or unexpected token/);
  });
});

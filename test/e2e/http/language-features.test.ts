/** Checks what is special in each language: its names, its errors, its builds, modules and types; and machines that lack one. */

import { describe, expect, test } from 'vitest';
import { BARE_TOOLS, environmentWith, linkTools } from '../harness.ts';
import { anotherService, ID, ok, useService } from './service.ts';

const service = await useService();

describe('the name of a language', () => {
  const HELLO: [string[], string][] = [
    [['py', 'python', 'Python'], 'print("hello")'],
    [['bash', 'sh'], 'echo hello'],
    [['js', 'javascript', 'node', 'JavaScript'], 'console.log("hello")'],
    [['ts', 'typescript'], 'const text: string = "hello"; console.log(text)'],
    [['go'], 'package main\n\nimport "fmt"\n\nfunc main() { fmt.Println("hello") }\n'],
    [['cpp', 'c++', 'C++'], '#include <cstdio>\nint main() { puts("hello"); }'],
  ];
  test.each(HELLO.flatMap(([names, code]) => names.map((name) => [name, code] as const)))(
    'such as %s is accepted',
    async (lang, code) => {
      expect((await service.exec({ lang, code })).stdout).toBe('hello\n');
    },
  );

  test.each(['rust', '', '__proto__', 'constructor', '../bash'])('such as %j is answered as unknown', async (lang) => {
    const answer = await service.exec({ lang, code: '1' });
    expect(answer).toMatchObject({ stdout: '', files: [], session_id: expect.stringMatching(ID) });
    expect(answer.stderr).toBe(
      `There is no language ${JSON.stringify(lang)} here. Languages that are here: py, bash, js, ts, go, cpp.\n`,
    );
    expect(answer.run).toMatchObject({ code: 127, status: 'RE', reason: 'unknown-language', stderr: answer.stderr });
  });

  test('that is unknown leaves the session as it is, and another call may go on in it', async () => {
    const entity_id = 'no-language';
    await service.python('x = 1', { entity_id });
    const refused = await service.exec({ lang: 'rs', code: '1', entity_id });
    const answer = await service.python('print(x)', { session_id: refused.session_id });
    expect([answer.stdout, answer.session_id]).toEqual(['1\n', refused.session_id]);
    const fresh = await service.exec({ lang: 'rs', code: '1' });
    expect((await service.python('1', { session_id: fresh.session_id })).session_id).toBe(fresh.session_id);
    const another = await service.exec({ lang: 'rs', code: '1', session_id: '../../x' });
    expect(another.session_id).toMatch(ID);
  });

  test('that is unknown is answered the same in a stream', async () => {
    const stream = await service.stream({ lang: 'rs', code: '1' });
    expect([stream.status, await stream.ended, stream.kinds()]).toEqual([200, true, ['session', 'stream', 'done']]);
    const done = await stream.event('done');
    expect(done).toMatchObject({ stderr: stream.printed(), run: { code: 127, reason: 'unknown-language' }, files: [] });
  });

  test.each([
    ['rs', /^There is no language "rs" here\. Languages that are here: py, /],
    ['js', /^Tools can be called from Python and from bash, not from js\./],
  ])('that cannot call tools (%s) is refused in stderr', async (lang, message) => {
    const reply = ok(await service.post('/exec/programmatic', { lang, code: '1', tools: [{ name: 'add' }] }));
    const { stderr, ...answer } = reply.json<{ stderr: string }>();
    expect(stderr).toMatch(message);
    expect(answer).toMatchObject({ status: 'error', error: stderr.trim(), stdout: '', session_id: expect.any(String) });
  });
});

describe('arguments', () => {
  test('may be one string, which is split as by a shell', async () => {
    const { stdout } = await service.bash('printf "<%s>\\n" "$@"', { args: `a 'b c' "d 'e'" f\\ g ""` });
    expect(stdout).toBe("<a>\n<b c>\n<d 'e'>\n<f g>\n<>\n");
  });

  test('may be numbers and booleans', async () => {
    expect((await service.bash('echo "$1 $2"', { args: [1, true] })).stdout).toBe('1 true\n');
  });

  test('hold for one call alone', async () => {
    const code = 'import sys; print(sys.argv[1:])';
    expect((await service.python(code, { args: ['x'], entity_id: 'argv' })).stdout).toBe("['x']\n");
    expect((await service.python(code, { entity_id: 'argv' })).stdout).toBe('[]\n');
  });
});

test('Python code that asks for input is told that there is none', async () => {
  const { stderr, run: how } = await service.python('x = input("name? ")');
  expect(how.code).toBe(1);
  expect(stderr).toMatch(/Error/);
});

describe('an error names its line', () => {
  test.each<[string, string, string, RegExp]>([
    [
      'C++ that does not compile',
      'cpp',
      '#include <string>\nint main() {\n  std::string x = 1.5 +;\n}',
      /main\.cpp:3:\d+: error/,
    ],
    [
      'Go that does not compile',
      'go',
      'package main\n\nfunc main() {\n\tx := "unused"\n}\n',
      /main\.go:4:2: declared and not used/,
    ],
    ['TypeScript that does not parse', 'ts', 'const a: number = 1;\nconst b: = 2;\n', /main\.ts:2:\d+/],
    ['JavaScript that does not parse', 'js', 'const a = 1;\nconst b = ;\n', /:2\n[\s\S]*SyntaxError/],
    ['JavaScript that throws', 'js', '\n\nthrow new Error("here")', /:3\b[\s\S]*Error: here/],
    [
      'TypeScript that throws',
      'ts',
      'enum A { B }\ninterface C { d: A }\n\nthrow new Error("here " + A.B)',
      /main\.ts:4\b[\s\S]*Error: here 0|:4:\d+/,
    ],
    [
      'Go that panics',
      'go',
      'package main\n\nfunc main() {\n\tvar x []int\n\t_ = x[len(x)]\n}\n',
      /index out of range[\s\S]*main\.go:5/,
    ],
    ['bash', 'bash', 'true\nno_such_command', /line 2: no_such_command/],
    ['Python', 'py', 'x = 1\n\n1/0', /3 1\/0|line 3/],
  ])('in %s', async (_, lang, code, place) => {
    const answer = await service.exec({ lang, code });
    expect(answer.stderr).toMatch(place);
    expect(answer.run.code).not.toBe(0);
    expect([answer.stdout, answer.files]).toEqual(['', []]);
  });
});

describe('a compiled program', () => {
  test.each<[string, string]>([
    ['go', 'package main\n\nimport "fmt"\n\nfunc main() { fmt.Println("built") }\n'],
    ['cpp', '#include <iostream>\nint main() { std::cout << "built" << std::endl; }\n'],
  ])('in %s is built once, also for other sessions', async (lang, source) => {
    const code = `${source}// ${crypto.randomUUID()}\n`;
    const first = await service.exec({ lang, code, entity_id: 'built-a' });
    const again = [await service.exec({ lang, code, entity_id: 'built-a' }), await service.exec({ lang, code })];
    for (const { stdout, stderr, run: how } of again) {
      expect([stdout, stderr]).toEqual(['built\n', '']);
      expect(how.cpu_time ?? 0).toBeLessThan((first.run.cpu_time ?? 0) / 4);
    }
  });

  test('is built again when a file that it includes has changed', async () => {
    const entity_id = 'header';
    const code = `#include <cstdio>\n#include "value.h"\nint main() { std::printf("%d", VALUE); } // ${crypto.randomUUID()}`;
    for (const value of ['1', '2']) {
      await service.bash(`echo '#define VALUE ${value}' > value.h`, { entity_id });
      expect((await service.exec({ lang: 'cpp', code, entity_id })).stdout).toBe(value);
    }
  });

  test('that several callers build at once is whole for all of them', async () => {
    const code = `#include <cstdio>\nint main() { puts("at once"); } // ${crypto.randomUUID()}`;
    const answers = await Promise.all([1, 2, 3].map(() => service.exec({ lang: 'cpp', code })));
    expect(answers.map(({ stdout, stderr }) => [stdout, stderr])).toEqual(Array(3).fill(['at once\n', '']));
  });
});

describe('JavaScript and TypeScript', () => {
  test.each<[string, string, string, string]>([
    ['modules', 'js', 'import os from "node:os"; console.log(typeof os.cpus, await 1)', 'function 1\n'],
    ['CommonJS', 'js', 'const os = require("os"); console.log(typeof os.cpus, __dirname)', 'function /mnt/data\n'],
    [
      'types in modules',
      'ts',
      'import type { Stats } from "node:fs"; import { statSync, type Dirent } from "node:fs"; const s: Stats = statSync("."); console.log(s.isDirectory())',
      'true\n',
    ],
    [
      'types in CommonJS',
      'ts',
      'const fs = require("fs") as typeof import("fs"); console.log(fs.existsSync("."))',
      'true\n',
    ],
    [
      'enums and namespaces',
      'ts',
      'enum Color { Red, Green = "g" } namespace N { export const x = Color.Green } console.log(Color.Red, N.x, Color[0])',
      '0 g Red\n',
    ],
    [
      'parameter properties',
      'ts',
      'class P { constructor(private readonly x: number, public y = 2) {} sum(): number { return this.x + this.y } } console.log(new P(1).sum())',
      '3\n',
    ],
    [
      'generics, satisfies and non-null assertions',
      'ts',
      'const f = <T extends { a: number }>(x: T) => x satisfies { a: number }; console.log(f({ a: 1 })!.a as unknown as string)',
      '1\n',
    ],
  ])('support %s (%s)', async (_, lang, code, expected) => {
    const answer = await service.exec({ lang, code });
    expect([answer.stdout, answer.stderr, answer.files]).toEqual([expected, '', []]);
  });

  test('import what is in the workspace', async () => {
    const entity_id = 'imports';
    await service.bash(
      'echo "export const one = 1" > lib.mjs; echo "exports.two = 2" > lib.cjs; echo "{\\"three\\": 3}" > data.json',
      { entity_id },
    );
    const code =
      'import { one } from "./lib.mjs"; import lib from "./lib.cjs"; import { readFileSync } from "node:fs"; console.log(one, lib.two, JSON.parse(readFileSync("data.json", "utf8")).three)';
    for (const lang of ['js', 'ts']) expect((await service.exec({ lang, code, entity_id })).stdout).toBe('1 2 3\n');
    const required = await service.exec({ lang: 'js', code: 'console.log(require("./data.json").three)', entity_id });
    expect(required.stdout).toBe('3\n');
  });
});

test('a language that is not installed is answered with how to install it and is found once it is there', async () => {
  const env = environmentWith(service.home, [...BARE_TOOLS, 'bwrap']);
  const bare = await anotherService({ home: service.home, env });

  const refused = await bare.exec({ lang: 'cpp', code: 'int main() {}' });
  expect(refused.stderr).toMatch(/^C\+\+ is not installed.*apt install g\+\+.* Languages that are here: py, bash/s);
  expect(refused.stderr).not.toMatch(/here: .*cpp/);
  expect(refused.run).toMatchObject({ code: 127, status: 'RE', reason: 'runtime-missing' });
  const streamed = await bare.stream({ lang: 'cpp', code: 'int main() {}' });
  expect((await streamed.event('done')).stderr).toBe(refused.stderr);
  const health = ok(await bare.get('/health')).json<{
    runtime_capabilities: Record<string, { available: boolean; missing: string[]; install: string | null }>;
  }>();
  expect(health.runtime_capabilities.cpp).toMatchObject({ available: false, install: expect.stringContaining('g++') });
  expect(health.runtime_capabilities.cpp?.missing).not.toEqual([]);
  expect(health.runtime_capabilities.bash).toMatchObject({ available: true, missing: [] });
  expect((await bare.bash('echo works')).stdout).toBe('works\n');
  expect((await bare.python('print("works")')).stdout).toBe('works\n');

  linkTools(env.PATH, ['g++', 'as', 'ld']);
  const answer = await bare.exec({ lang: 'cpp', code: '#include <cstdio>\nint main() { puts("found"); }' });
  expect([answer.stdout, answer.stderr]).toEqual(['found\n', '']);
});

test('programs run under the memory and CPU limits that are set', async () => {
  const limited = await anotherService({
    home: service.home,
    env: { SUBPROCESS_MAX_MEMORY_MB: '400', SUBPROCESS_MAX_CPU_SECONDS: '1' },
  });
  const [memory, cpu] = await Promise.all([
    limited.bash('python3 -c "x = bytearray(600 << 20)"'),
    limited.bash('while :; do :; done'),
  ]);
  expect(memory.stderr).toContain('MemoryError');
  expect(cpu.run.signal).toMatch(/SIGXCPU|SIGKILL/);
  expect(cpu.run.cpu_time).toBeLessThan(2500);
});

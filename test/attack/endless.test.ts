/** Runs code whose output, work or compilation never ends, and checks that it is ended at its limit and that the answer says which. */

import { describe, expect, test } from 'vitest';
import { HANGS_AFTER } from '../e2e/harness.ts';
import { expectLimit, freshName, type Lang, MAX_OUTPUT, useConfined } from './attack.ts';

const { attack, expectNextCallWorks } = await useConfined();

describe('too much output', () => {
  const expected = { reason: 'output-limit', limit: /1,?000,?000 characters/ };

  test.each<[string, Lang, string]>([
    ['endless lines', 'py', 'while True: print("x" * 78)'],
    ['endless lines on standard error', 'py', 'import sys\nwhile True: print("x" * 78, file=sys.stderr)'],
    ['endless characters without a newline', 'py', 'while True: print("x", end="")'],
    ['one line of 100 MB', 'py', 'print("x" * 100_000_000)'],
    ['one line of 600 MB', 'bash', "head -c 600000000 /dev/zero | tr '\\0' x"],
    ['bytes that are no text', 'py', 'import os, sys\nwhile True: sys.stdout.buffer.write(os.urandom(1 << 16))'],
    ['bytes that are no text, from a shell', 'bash', 'cat /dev/urandom'],
    ['NUL bytes from a shell', 'bash', 'cat /dev/zero'],
    ['standard error of a shell', 'bash', 'yes >&2'],
    ['lines from many children at once', 'bash', 'for i in 1 2 3 4 5 6 7 8; do yes $i & done; wait'],
    ['endless writes of Node', 'js', 'for (;;) require("node:fs").writeSync(1, "x".repeat(1 << 16));'],
    // Not console.log: what it prints faster than it is read fills Node's own memory.
    [
      'endless writes of TypeScript',
      'ts',
      'import { writeSync } from "node:fs";\nfor (;;) writeSync(1, "x".repeat(1 << 16) as string);',
    ],
    ['endless lines from C++', 'cpp', '#include <cstdio>\nint main() { for (;;) puts("x"); }'],
    [
      'endless lines from Go',
      'go',
      'package main\n\nimport "fmt"\n\nfunc main() {\n\tfor {\n\t\tfmt.Println("x")\n\t}\n}\n',
    ],
    ['errors of a compiler', 'cpp', `int main() { ${'undeclared + '.repeat(40_000)} 1; }`],
  ])('as %s is held to the output limit, and the next call works', async (_, lang, code) => {
    const entity_id = freshName();
    // It is the output that ends it, however long a slow machine takes to print so much.
    const answer = await attack(lang, code, { entity_id, timeout: HANGS_AFTER });
    if (answer.run.reason !== 'exit') expectLimit(answer, expected);
    else expect(lang).toBe('cpp');
    expect(answer.stdout.length + answer.stderr.length).toBeLessThan(2 * MAX_OUTPUT);
    await expectNextCallWorks(entity_id);
  });

  test('as a hundred thousand displays leaves the next call working', async () => {
    const entity_id = freshName();
    const code = 'from IPython.display import display\nfor n in range(100_000): display(n)';
    const { run } = await attack('py', code, { entity_id, timeout: 8000 });
    expect([null, 'output-limit', 'timeout']).toContain(run.reason);
    await expectNextCallWorks(entity_id);
  });

  test('as displays of images that print nothing is ended, and the next call works', async () => {
    const entity_id = freshName();
    const code =
      'from IPython.display import display\nfor n in range(2000): display({"image/png": "A" * 1_000_000, "text/plain": ""}, raw=True)';
    const { run } = await attack('py', code, { entity_id, timeout: 20_000 });
    expect(['output-limit', 'oom', 'timeout', 'disk-quota']).toContain(run.reason);
    await expectNextCallWorks(entity_id);
  });
});

describe('in a session with a time limit,', () => {
  test.each<[string, Lang, string]>([
    ['a loop in C that holds the lock of Python', 'py', 'import ctypes; ctypes.PyDLL(None).sleep(60)'],
    ['a power that is too large to compute', 'py', 'x = 7 ** (10 ** 9)'],
    ['a catastrophic regular expression', 'py', 'import re; re.match(r"(a+)+$", "a" * 60 + "b")'],
    ['a catastrophic regular expression in Node', 'js', '/^(a+)+$/.test("a".repeat(60) + "b")'],
    ['an object that takes forever to show', 'py', 'class X:\n    def __repr__(self):\n        while True: pass\nX()'],
    ['a C++ program', 'cpp', '#include <csignal>\nint main() { for (;;) std::signal(SIGINT, SIG_IGN); }'],
    ['a Go program', 'go', 'package main\n\nfunc main() {\n\tfor {\n\t}\n}\n'],
    ['an #include of /dev/random', 'cpp', '#include "/dev/random"\nint main() {}'],
    ['an #include of /dev/zero', 'cpp', '#include "/dev/zero"\nint main() {}'],
  ])('endless work in %s is ended at the limit or before, and the next call works', async (_, lang, code) => {
    const entity_id = freshName();
    const answer = await attack(lang, code, { entity_id, timeout: 2000 });
    if (/#include "\/dev/.test(code)) expect(['timeout', 'oom', 'exit', 'output-limit']).toContain(answer.run.reason);
    else expectLimit(answer, { reason: 'timeout', limit: /2 s/ });
    await expectNextCallWorks(entity_id);
  });

  test.each([
    [
      'templates',
      'template <int N, long M> struct B { enum { v = B<N - 1, M * 2>::v + B<N - 1, M * 2 + 1>::v }; };\ntemplate <long M> struct B<0, M> { enum { v = 1 }; };\nint main() { return B<26, 0>::v; }',
    ],
    [
      'macros',
      `#define A0 1+1+1+1+1+1+1+1+1+1\n${Array.from({ length: 9 }, (_, n) => `#define A${n + 1} ${Array(10).fill(`A${n}`).join('+')}`).join('\n')}\nint main() { return A9; }`,
    ],
    [
      'a constant expression',
      'constexpr long f(long n) { long s = 0; for (long i = 0; i < n; i++) s ^= i; return s; }\nint main() { static_assert(f(200000000000) != 1); }',
    ],
    ['a file that includes itself', '#include __FILE__\nint main() {}'],
    ['an array of 8 GB in the program', 'char x[8L << 30] = {1};\nint main() { return x[5]; }'],
  ])('a compiler kept busy by %s is ended with an error, and the next call works', async (_, code) => {
    const entity_id = freshName();
    const { run } = await attack('cpp', code, { entity_id, timeout: 4000 });
    expect(['oom', 'timeout', 'exit', 'disk-quota']).toContain(run.reason);
    expect(run.code).not.toBe(0);
    await expectNextCallWorks(entity_id);
  });

  test.each([
    '#include "/etc/shadow"',
    '#include "/etc/shadow-"',
    '#include "/root/.bash_history"',
    '#include "/proc/1/environ"',
    'asm(".incbin \\"/etc/shadow\\"");',
    'const char x[] = {\n#embed "/etc/shadow"\n};',
  ])('a compiler that is asked for %s fails and shows no secret', async (line) => {
    const { run, stdout, stderr } = await attack('cpp', `${line}\nint main() {}`);
    expect(run.code).not.toBe(0);
    expect(stdout + stderr).not.toMatch(/root:|CUVETTE|\$6\$|\$y\$/);
  });
});

/** Code without an end: of its output, of its work, of its compilation. It is ended at its limit, and told so. */

import { describe, expect, test } from 'vitest';
import { HANGS_AFTER } from '../e2e/harness.ts';
import { expectLimit, freshName, type Lang, MAX_OUTPUT, useConfined } from './attack.ts';

const { attack, expectNextCallWorks } = await useConfined();

describe('output', () => {
  const expected = { reason: 'output-limit', limit: /1,?000,?000 characters/ };

  test.each<[string, Lang, string]>([
    ['endless lines', 'py', 'while True: print("x" * 78)'],
    ['endless errors', 'py', 'import sys\nwhile True: print("x" * 78, file=sys.stderr)'],
    ['no newline', 'py', 'while True: print("x", end="")'],
    ['one line of 100 MB', 'py', 'print("x" * 100_000_000)'],
    ['one line of 600 MB', 'bash', "head -c 600000000 /dev/zero | tr '\\0' x"],
    ['bytes that are no text', 'py', 'import os, sys\nwhile True: sys.stdout.buffer.write(os.urandom(1 << 16))'],
    ['bytes that are no text, of a shell', 'bash', 'cat /dev/urandom'],
    ['NUL', 'bash', 'cat /dev/zero'],
    ['errors of a shell', 'bash', 'yes >&2'],
    ['from many children at once', 'bash', 'for i in 1 2 3 4 5 6 7 8; do yes $i & done; wait'],
    ['Node', 'js', 'for (;;) require("node:fs").writeSync(1, "x".repeat(1 << 16));'],
    // Not console.log: what it prints faster than it is read fills Node's own memory.
    ['TypeScript', 'ts', 'import { writeSync } from "node:fs";\nfor (;;) writeSync(1, "x".repeat(1 << 16) as string);'],
    ['C++', 'cpp', '#include <cstdio>\nint main() { for (;;) puts("x"); }'],
    ['Go', 'go', 'package main\n\nimport "fmt"\n\nfunc main() {\n\tfor {\n\t\tfmt.Println("x")\n\t}\n}\n'],
    ['errors of a compiler', 'cpp', `int main() { ${'undeclared + '.repeat(40_000)} 1; }`],
  ])('%s', async (_, lang, code) => {
    const entity_id = freshName();
    // It is the output that ends it, however long a slow machine takes to print so much.
    const answer = await attack(lang, code, { entity_id, timeout: HANGS_AFTER });
    if (answer.run.reason !== 'exit') expectLimit(answer, expected);
    else expect(lang).toBe('cpp');
    expect(answer.stdout.length + answer.stderr.length).toBeLessThan(2 * MAX_OUTPUT);
    await expectNextCallWorks(entity_id);
  });

  test('a hundred thousand displays', async () => {
    const entity_id = freshName();
    const code = 'from IPython.display import display\nfor n in range(100_000): display(n)';
    const { run } = await attack('py', code, { entity_id, timeout: 8000 });
    expect([null, 'output-limit', 'timeout']).toContain(run.reason);
    await expectNextCallWorks(entity_id);
  });

  test('displays of data that is not printed', async () => {
    const entity_id = freshName();
    const code =
      'from IPython.display import display\nfor n in range(2000): display({"image/png": "A" * 1_000_000, "text/plain": ""}, raw=True)';
    const { run } = await attack('py', code, { entity_id, timeout: 20_000 });
    expect(['output-limit', 'oom', 'timeout', 'disk-quota']).toContain(run.reason);
    await expectNextCallWorks(entity_id);
  });
});

describe('time', () => {
  test.each<[string, Lang, string]>([
    ['a loop in C that holds the lock of Python', 'py', 'import ctypes; ctypes.PyDLL(None).sleep(60)'],
    ['a number too large', 'py', 'x = 7 ** (10 ** 9)'],
    ['a catastrophic regular expression', 'py', 'import re; re.match(r"(a+)+$", "a" * 60 + "b")'],
    ['a catastrophic regular expression in Node', 'js', '/^(a+)+$/.test("a".repeat(60) + "b")'],
    ['an object that takes forever to show', 'py', 'class X:\n    def __repr__(self):\n        while True: pass\nX()'],
    ['a C++ program', 'cpp', '#include <csignal>\nint main() { for (;;) std::signal(SIGINT, SIG_IGN); }'],
    ['a Go program', 'go', 'package main\n\nfunc main() {\n\tfor {\n\t}\n}\n'],
    ['#include of /dev/random', 'cpp', '#include "/dev/random"\nint main() {}'],
    ['#include of /dev/zero', 'cpp', '#include "/dev/zero"\nint main() {}'],
  ])('%s ends at its time, or before', async (_, lang, code) => {
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
      'a constant',
      'constexpr long f(long n) { long s = 0; for (long i = 0; i < n; i++) s ^= i; return s; }\nint main() { static_assert(f(200000000000) != 1); }',
    ],
    ['a file that includes itself', '#include __FILE__\nint main() {}'],
    ['an array in the program', 'char x[8L << 30] = {1};\nint main() { return x[5]; }'],
  ])('a compiler led astray by %s', async (_, code) => {
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
  ])('a compiler asked for %s has nothing to show', async (line) => {
    const { run, stdout, stderr } = await attack('cpp', `${line}\nint main() {}`);
    expect(run.code).not.toBe(0);
    expect(stdout + stderr).not.toMatch(/root:|CUVETTE|\$6\$|\$y\$/);
  });
});

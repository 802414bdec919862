import { mkdirSync, readdirSync, rmSync, statSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { cpp } from '../../../src/interpreters/process/cpp.ts';
import { temporaryFolder } from '../../temporary-folder.ts';
import { isMissing, openSession } from './run-plan.ts';

const skip = await isMissing(cpp);
const info = await cpp.probe();
const isGcc = 'version' in info && info.version.startsWith('g++');
const MAIN = '#include <cstdio>\n';

describe.skipIf(skip)('a C++ program', () => {
  it('is built, run in the workspace, and the next time only run', async () => {
    const { run, workspace } = openSession(cpp);
    const code = `#include <filesystem>
      #include <iostream>
      int main(int count, char** args) {
        std::cout << std::filesystem::current_path().string() << ' ' << std::cin.get();
        for (int i = 1; i < count; i++) std::cout << " [" << args[i] << ']';
      }`;
    const args = ['', 'two words', '-v', '"'];
    const stdout = `${workspace} -1 [] [two words] [-v] ["]`;
    expect(await run(code, { args })).toMatchObject({ steps: ['build', 'run'], stdout, stderr: '', exitCode: 0 });
    expect(await run(code, { args })).toMatchObject({ steps: ['run'], stdout, stderr: '', exitCode: 0 });
    expect(readdirSync(workspace)).toEqual([]);
  });

  it('is C++17 with threads', async () => {
    const code =
      '#include <thread>\n#include <cstdio>\nint main() { std::thread([] { printf("%ld", __cplusplus); }).join(); }';
    expect((await openSession(cpp).run(code)).stdout).toBe('201703');
  });

  it('with an error is told its own line and column, and is not kept', async () => {
    const { run } = openSession(cpp);
    for (const _ of ['once', 'twice']) {
      const { stderr, exitCode, steps } = await run('int main() {\n  int x = nosuch;\n}');
      expect(stderr).toMatch(
        /\/main\.cpp:2:11: error: .*nosuch.* was not declared|\/main\.cpp:2:11: error: use of undeclared/,
      );
      expect({ exitCode, steps }).toEqual({ exitCode: 1, steps: ['build', 'run'] });
    }
  });

  it('gives its own exit code and signal', async () => {
    const { run } = openSession(cpp);
    expect((await run('int main() { return 7; }')).exitCode).toBe(7);
    expect((await run('#include <csignal>\nint main() { raise(SIGSEGV); }')).signal).toBe('SIGSEGV');
    const { stderr, signal } = await run('#include <cassert>\nint main() {\n  assert(1 > 2);\n}');
    expect(stderr).toMatch(/main\.cpp:3|line 3/);
    expect(signal).toBe('SIGABRT');
  });

  it('is built again when a file that it includes from the workspace has changed, at any depth', async () => {
    const { run, workspace } = openSession(cpp);
    const put = (name: string, text: string) => writeFileSync(join(workspace, name), text);
    mkdirSync(join(workspace, 'sub'));
    put('one.h', '#include "sub/two.h"\n#define A 1\n');
    put('sub/two.h', '#include "three.h"\n#define B 2\n');
    put('sub/three.h', '#define C 3\n');
    const code = `${MAIN}#include "one.h"\nint main() { printf("%d %d %d", A, B, C); }`;
    expect(await run(code)).toMatchObject({ steps: ['build', 'run'], stdout: '1 2 3' });
    expect(await run(code)).toMatchObject({ steps: ['run'], stdout: '1 2 3' });
    put('sub/three.h', '#define C 4\n');
    expect(await run(code)).toMatchObject({ steps: ['build', 'run'], stdout: '1 2 4' });
    put('sub/three.h', '#define C 3\n');
    expect(await run(code)).toMatchObject({ steps: ['run'], stdout: '1 2 3' });
    // The one beside the file that includes it comes first.
    put('three.h', '#define C 5\n');
    expect(await run(code)).toMatchObject({ stdout: '1 2 3' });
    rmSync(join(workspace, 'sub', 'three.h'));
    expect(await run(code)).toMatchObject({ steps: ['build', 'run'], stdout: '1 2 5' });
  });

  it('is built again when a file comes that hides one of the system', async () => {
    const { run, workspace } = openSession(cpp);
    const code = `${MAIN}#include "limits.h"\nint main() { printf("%d", INT_MAX); }`;
    expect(await run(code)).toMatchObject({ steps: ['build', 'run'], stdout: '2147483647' });
    expect(await run(code)).toMatchObject({ steps: ['run'] });
    writeFileSync(join(workspace, 'limits.h'), '#define INT_MAX 1\n');
    expect(await run(code)).toMatchObject({ steps: ['build', 'run'], stdout: '1' });
  });

  it('that may include files of the workspace is kept for that workspace alone', async () => {
    const { run, cache } = openSession(cpp);
    const other = openSession(cpp, cache);
    const plain = `${MAIN}int main() { puts("plain"); }`;
    const including = `${MAIN}#include "limits.h"\nint main() { puts("including"); }`;
    for (const code of [plain, including]) await run(code);
    expect(await other.run(plain)).toMatchObject({ steps: ['run'] });
    expect(await other.run(including)).toMatchObject({ steps: ['build', 'run'] });
  });

  it('is not kept if a file changed while it was built', async () => {
    const { plan, workspace } = openSession(cpp);
    writeFileSync(join(workspace, 'a.h'), '#define A 1\n');
    const code = `${MAIN}#include "a.h"\nint main() { printf("%d", A); }`;
    const { plan: first, program } = await plan(code);
    writeFileSync(join(program, 'program'), 'built');
    writeFileSync(join(workspace, 'a.h'), '#define A 2\n');
    writeFileSync(join(workspace, 'a.h'), '#define A 1\n');
    await first.built?.();
    expect((await plan(code)).plan.steps).toHaveLength(2);
  });

  it.each([
    ['by a macro', '#define X "a.h"\n#include X\n'],
    ['over two lines', '#include \\\n  "a.h"\n'],
    ['after a comment', '/* */ #include "a.h"\n'],
    ['in other characters', '%:include "a.h"\n'],
    ['after a test for it', '#if __has_include("a.h")\n#include "a.h"\n#endif\n'],
    ['by a path to it', 'PATH'],
    ['through a link', '#include "link.h"\n'],
  ])('is never run from an old build, also where it includes a file %s', async (_, include) => {
    const { run, workspace } = openSession(cpp);
    const code = `${MAIN}${include === 'PATH' ? `#include "${join(workspace, 'a.h')}"\n` : include}int main() { printf("%d", A); }`;
    symlinkSync('a.h', join(workspace, 'link.h'));
    for (const value of [1, 2, 1]) {
      writeFileSync(join(workspace, 'a.h'), `#define A ${value}\n`);
      expect(await run(code)).toMatchObject({ stdout: String(value), stderr: '' });
    }
  });

  it('with the time in it is built each time', async () => {
    const { run } = openSession(cpp);
    const code = `${MAIN}int main() { puts(__TIME__); }`;
    expect(await run(code)).toMatchObject({ steps: ['build', 'run'] });
    expect(await run(code)).toMatchObject({ steps: ['build', 'run'] });
  });

  it('is planned without waiting for what it includes', async () => {
    const { plan, workspace } = openSession(cpp);
    symlinkSync('/dev/zero', join(workspace, 'zero'));
    for (const name of ['/dev/random', '/etc/shadow', 'zero', '../../../../dev/zero', '.', 'x'.repeat(300), 'a\0b']) {
      expect((await plan(`#include "${name}"\nint main() {}`)).plan.steps).toHaveLength(2);
    }
  });
});

describe.skipIf(skip || !isGcc)('the precompiled header', () => {
  const HOUR = 60 * 60_000;
  const EVERYTHING = '#include <bits/stdc++.h>\n';
  const body = 'int main() { std::vector<int> v{3, 1, 2}; std::sort(v.begin(), v.end()); std::cout << v[0]; }';
  const usesIt = (argv: string[] | undefined) => argv?.includes('-I') ?? false;

  // On a busy machine it takes as long as that: it steps back behind everybody else.
  it('is made in the background, and used by programs that begin with it', { timeout: HOUR }, async () => {
    const { run, plan, cache } = openSession(cpp);
    expect(usesIt((await plan(EVERYTHING + body)).plan.steps[0]?.argv)).toBe(false);
    expect(await run(EVERYTHING + body)).toMatchObject({ stdout: '1', stderr: '' });
    await cpp.prepare?.(cache);
    expect(readdirSync(join(cache, 'cpp'))).toHaveLength(1);
    for (const start of ['', '// A comment\n/* and * another */\n\n', '\ufeff']) {
      const { plan: made, stdout, stderr } = await run(`${start}${EVERYTHING}${body} // ${start.length}`);
      expect(usesIt(made.steps[0]?.argv)).toBe(true);
      expect({ stdout, stderr }).toEqual({ stdout: '1', stderr: '' });
    }
    const others = [
      `#include <vector>\n${EVERYTHING}${body}`,
      `#define int long\n${EVERYTHING}signed main() {}`,
      `#pragma GCC optimize("O3")\n${EVERYTHING}${body}`,
      `// continued \\\n${EVERYTHING}#include <iostream>\n#include <algorithm>\n#include <vector>\n${body}`,
      `#include <iostream>\nint main() {}`,
    ];
    for (const code of others) expect(usesIt((await plan(code)).plan.steps[0]?.argv)).toBe(false);

    // Errors still name the program's own line.
    expect((await run(`${EVERYTHING}int main() {\n  nosuch();\n}`)).stderr).toMatch(/main\.cpp:3:3: error/);

    // One that is cut off is not used, and made again.
    const header = join(cache, 'cpp', readdirSync(join(cache, 'cpp'))[0] ?? '', 'bits', 'stdc++.h.gch');
    truncateSync(header, Math.floor(statSync(header).size / 2));
    expect(await run(`${EVERYTHING}${body} // again`)).toMatchObject({ stdout: '1', stderr: '' });
    await cpp.prepare?.(cache);
    expect(usesIt((await plan(`${EVERYTHING}${body} // at last`)).plan.steps[0]?.argv)).toBe(true);
  });

  it('that cannot be made leaves builds as they are', async () => {
    const cache = temporaryFolder();
    writeFileSync(join(cache, 'cpp'), 'a file where a folder should be');
    const { run } = openSession(cpp, cache);
    expect(await run(EVERYTHING + body)).toMatchObject({ stdout: '1', stderr: '' });
    await expect(cpp.prepare?.(cache)).rejects.toThrow();
    expect(await run(EVERYTHING + body)).toMatchObject({ steps: ['run'], stdout: '1' });
  });
});

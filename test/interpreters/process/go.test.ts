import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, inject, it } from 'vitest';
import { go } from '../../../src/interpreters/process/go.ts';
import { toolOf } from '../../../src/interpreters/process/language.ts';
import { findBubblewrap } from '../../../src/sandbox/bubblewrap.ts';
import { linkTree } from '../../link-tree.ts';
import { isMissing, openSession } from './run-plan.ts';

const skip = await isMissing(go);
// With the standard library, which is compiled already: else the first program would wait for that.
const cache = mkdtempSync(join(tmpdir(), 'cuvette-go-'));
const prepared = join(inject('cacheHome'), 'cuvette', 'programs', 'go', 'build');
if (existsSync(prepared)) linkTree(prepared, join(cache, 'go', 'build'));
afterAll(() => rmSync(cache, { recursive: true, force: true }));

const cannotMount = spawnSync(findBubblewrap() ?? 'false', ['--dev-bind', '/', '/', '--', 'true']).status !== 0;
const open = () => openSession(go, cache);
const program = (body: string, imports = 'import "fmt"') => `package main\n\n${imports}\n\nfunc main() {\n${body}\n}\n`;

describe.skipIf(skip)('a Go program', () => {
  it('is built, run in the workspace, and the next time only run', async () => {
    const { run, workspace } = open();
    const code = program(
      '\tdir, _ := os.Getwd()\n\ttext, _ := io.ReadAll(os.Stdin)\n\tfmt.Printf("%s %d %q\\n", dir, len(text), os.Args[1:])',
      'import (\n"fmt"\n"io"\n"os"\n)',
    );
    const args = ['', 'two words', '-v', '"'];
    const stdout = `${workspace} 0 ["" "two words" "-v" "\\""]\n`;
    expect(await run(code, { args })).toMatchObject({ steps: ['build', 'run'], stdout, stderr: '', exitCode: 0 });
    expect(await run(code, { args })).toMatchObject({ steps: ['run'], stdout, stderr: '', exitCode: 0 });
    expect(readdirSync(workspace)).toEqual([]);
  });

  it('is built again when its source has changed', async () => {
    const { run } = open();
    expect(await run(program('fmt.Println(1)'))).toMatchObject({ steps: ['build', 'run'], stdout: '1\n' });
    expect(await run(program('fmt.Println(2)'))).toMatchObject({ steps: ['build', 'run'], stdout: '2\n' });
    expect(await run(program('fmt.Println(1)'))).toMatchObject({ steps: ['run'], stdout: '1\n' });
  });

  it('is kept for all sessions', async () => {
    const code = program('fmt.Println("shared")');
    await open().run(code);
    expect(await open().run(code)).toMatchObject({ steps: ['run'], stdout: 'shared\n' });
  });

  it('with an error is told its own line and column, and is not kept', async () => {
    const { run } = open();
    for (const _ of ['once', 'twice']) {
      const { stderr, stdout, exitCode, steps } = await run(program('\tx := 1\n\tfmt.Println("no")'));
      expect(stderr).toContain('./main.go:6:2: declared and not used: x');
      expect({ stdout, exitCode, steps }).toEqual({ stdout: '', exitCode: 1, steps: ['build', 'run'] });
    }
  });

  it('that panics names its line, and exits with its own code', async () => {
    const { run } = open();
    const { stderr, exitCode } = await run(program('\tvar list []int\n\n\tfmt.Println(list[3])'));
    expect(stderr).toMatch(/panic: runtime error: index out of range \[3\]/);
    expect(stderr).toContain('./main.go:8');
    expect(exitCode).toBe(2);
    expect((await run(program('\tos.Exit(7)', 'import "os"'))).exitCode).toBe(7);
  });

  it.each([
    ['a library', 'package tools\n\nfunc Twice(n int) int { return 2 * n }\n', /requires exactly one main package/],
    ['a program without main', 'package main\n', /function main is undeclared in the main package/],
    ['no Go', 'hello', /main\.go:1:1: expected 'package', found hello/],
    [
      'one that needs the network',
      program('x.Y()', 'import "example.com/x"'),
      /no required module provides package example/,
    ],
  ])('that is %s is told so by Go', async (_, code, message) => {
    const { stderr, exitCode, stdout } = await open().run(code);
    expect(stderr).toMatch(message);
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
  });

  it('is of the Go that builds it', async () => {
    const code = program(
      '\tvar all []func() int\n\tfor i := range 3 {\n\t\tall = append(all, func() int { return i })\n\t}\n\tfmt.Println(all[0](), all[2]())',
    );
    expect((await open().run(code)).stdout).toBe('0 2\n');
  });

  it("leaves nothing in the user's home, whatever is set there", async () => {
    const { run, workspace } = open();
    const env = { GOFLAGS: '-mod=nonsense', GO111MODULE: 'off', GOOS: '', GOPROXY: 'https://example.com' };
    expect(await run(program('fmt.Println("clean")'), { env })).toMatchObject({ stdout: 'clean\n', stderr: '' });
    expect(readdirSync(join(workspace, '..', 'home'))).toEqual([]);
    expect(readdirSync(join(cache, 'go', 'home', '.config', 'go', 'telemetry'))).toEqual(['mode']);
  });

  describe.skipIf(cannotMount)('confined, where it cannot write to the shared cache', () => {
    const isCacheReadOnly = true;
    const days = (count: number) => new Date(Date.now() - count * 24 * 60 * 60 * 1000);

    it('is built while nothing has been prepared in the cache', async () => {
      const { run } = openSession(go);
      // A package that needs few others: each has to be compiled here.
      const code = program('\tprintln(utf8.RuneCountInString("äöü"))', 'import "unicode/utf8"');
      expect(await run(code, { isCacheReadOnly })).toMatchObject({ stdout: '', stderr: '3\n', exitCode: 0 });
    });

    it('uses the index of a cache that was prepared, until Go itself may have removed it', async () => {
      const { plan, cache: fresh } = openSession(go);
      const environmentOf = async () =>
        (await plan(program('fmt.Println(1)'), { isCacheReadOnly })).plan.steps[0]?.env ?? {};
      expect(await environmentOf()).toMatchObject({ GODEBUG: 'goindex=0' });
      const { version } = await toolOf(go);
      const marker = join(fresh, 'go', `prepared-${version}`);
      writeFileSync(marker, '');
      expect(await environmentOf()).not.toHaveProperty('GODEBUG');
      utimesSync(marker, days(5), days(5));
      expect(await environmentOf()).toMatchObject({ GODEBUG: 'goindex=0' });
    });
  });
});

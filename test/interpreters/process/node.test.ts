import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { node } from '../../../src/interpreters/process/node.ts';
import { temporaryFolder } from '../../temporary-folder.ts';
import { isMissing, openSession } from './run-plan.ts';

const skip = await isMissing(node);

/** A workspace with a module of each kind, and a package.json if one is given. */
function open(packageFile?: unknown) {
  const session = openSession(node);
  const put = (name: string, text: string) => writeFileSync(join(session.workspace, name), text);
  put('old.cjs', "module.exports = { kind: 'CommonJS' };");
  put('new.mjs', "export const kind = 'ESM';");
  put('data.json', '{ "kind": "JSON" }');
  if (packageFile !== undefined) put('package.json', JSON.stringify(packageFile));
  return session;
}

describe.skipIf(skip)('a JavaScript program', () => {
  describe.each([
    ['no package.json', undefined],
    ['a package.json without type', {}],
    ['a package.json of type module', { type: 'module' }],
    ['a package.json of type commonjs', { type: 'commonjs' }],
  ])('in a workspace with %s', (_, packageFile) => {
    it('may be CommonJS', async () => {
      const { run, workspace } = open(packageFile);
      const code =
        "console.log(require('./old.cjs').kind, require('./data.json').kind, __dirname, require.main === module)";
      expect(await run(code)).toMatchObject({ stdout: `CommonJS JSON ${workspace} true\n`, stderr: '', exitCode: 0 });
    });

    it('may be an ES module', async () => {
      const { run, workspace } = open(packageFile);
      const code = `import { kind } from './new.mjs';
        import old from './old.cjs';
        console.log(kind, old.kind, import.meta.dirname, this === undefined)`;
      expect(await run(code)).toMatchObject({ stdout: `ESM CommonJS ${workspace} true\n`, stderr: '', exitCode: 0 });
    });

    it('may await at its top level', async () => {
      const { run } = open(packageFile);
      const code = "const { kind } = await import('./new.mjs');\nconsole.log(kind)";
      expect(await run(code)).toMatchObject({ stdout: 'ESM\n', stderr: '', exitCode: 0 });
    });
  });

  it('may require and import files that end in .js', async () => {
    const { run, workspace } = open();
    writeFileSync(join(workspace, 'old.js'), 'exports.x = 1');
    writeFileSync(join(workspace, 'new.js'), 'export const x = 2');
    expect((await run("console.log(require('./old').x)")).stdout).toBe('1\n');
    expect((await run("import { x } from './new.js'; console.log(x)")).stdout).toBe('2\n');
  });

  it('gets its arguments unharmed, and nothing to read', async () => {
    const args = ['', 'two words', '--inspect', '-e', '"', '$HOME'];
    const code = "console.log(JSON.stringify(process.argv.slice(2)), require('fs').readFileSync(0, 'utf8').length)";
    expect((await open().run(code, { args })).stdout).toBe(`${JSON.stringify(args)} 0\n`);
  });

  it('names its own line and column in errors', async () => {
    const { stderr, exitCode } = await open().run("\nconst f = () => {\n  throw new Error('no luck');\n};\nf();");
    expect(stderr).toMatch(/\.cuvette-\w+\.js:3\n {2}throw new Error/);
    expect(stderr).toMatch(/at f \(.*\.js:3:9\)/);
    expect(exitCode).toBe(1);
  });

  it('names the line of a syntax error', async () => {
    for (const packageFile of [undefined, { type: 'commonjs' }]) {
      const { stderr } = await open(packageFile).run('const a = 1;\nconst b = ;');
      expect(stderr).toMatch(/js:2\nconst b = ;/);
      expect(stderr).toMatch(/SyntaxError: Unexpected token ';'/);
    }
  });

  it('exits with its own code', async () => {
    expect((await open().run('process.exit(7)')).exitCode).toBe(7);
    expect((await open().run("process.kill(process.pid, 'SIGKILL')")).signal).toBe('SIGKILL');
  });

  it('may start with a hashbang', async () => {
    expect((await open({}).run('#!/usr/bin/env node\nconsole.log(1)')).stdout).toBe('1\n');
  });

  it('stands in the workspace under a hidden name, each time another, and says that the file is its own', async () => {
    const { plan, workspace } = open();
    const [one, two] = [(await plan('1')).plan.own, (await plan('2')).plan.own];
    expect(readdirSync(workspace)).toEqual(expect.arrayContaining([...one, ...two]));
    expect(new Set([...one, ...two]).size).toBe(2);
    for (const name of [...one, ...two]) expect(name).toMatch(/^\.cuvette-\w{12}\.js$/);
  });

  it('is planned whatever stands in the place of package.json', async () => {
    const folder = open();
    mkdirSync(join(folder.workspace, 'package.json'));
    expect((await folder.run("console.log(require('./old.cjs').kind)")).exitCode).toBe(0);
    const link = open();
    symlinkSync('/dev/zero', join(link.workspace, 'package.json'));
    expect((await link.plan('1')).plan.own).toHaveLength(1);
  });
});

describe('the Node that programs run in', () => {
  it('is the one on PATH', async () => {
    expect(await node.probe()).toMatchObject({ version: expect.stringMatching(/^\d+\.\d+\.\d+$/) });
  });

  it.each([
    ['there is none on PATH', undefined],
    ['the one on PATH is too old', '#!/bin/sh\necho v18.19.0\n'],
    ['the one on PATH is broken', '#!/bin/sh\nexit 1\n'],
  ])('is the one that runs Cuvette if %s', async (_, script) => {
    const folder = temporaryFolder();
    if (script) writeFileSync(join(folder, 'node'), script, { mode: 0o755 });
    vi.stubEnv('PATH', folder);
    try {
      expect(await node.probe()).toEqual({ path: process.execPath, version: process.versions.node });
    } finally {
      vi.unstubAllEnvs();
    }
  });
});

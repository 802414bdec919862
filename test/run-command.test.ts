import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { runCommand } from '../src/run-command.ts';
import { gone } from './e2e/harness.ts';

let folder: string;
let scratch: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cuvette-'));
  scratch = join(folder, 'scratch');
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

const sh = (script: string) => ['/bin/sh', '-c', script];

describe('a command that is run to its end', () => {
  test('says how it ended, with the last of what it said', async () => {
    const timeout = 10_000;
    expect(await runCommand(sh('echo out; echo err >&2'), { timeout, scratch })).toMatchObject({ ok: true });
    expect(await runCommand(sh('echo no; exit 3'), { timeout, scratch })).toEqual({ ok: false, output: 'no' });
    const missing = await runCommand([join(folder, 'missing')], { timeout, scratch });
    expect(missing).toMatchObject({ ok: false, output: expect.stringContaining('ENOENT') });
  });

  test('keeps temporary files in a folder of its own, which goes with it', async () => {
    const said = await runCommand(sh('ls "$TMPDIR"; mktemp'), { timeout: 10_000, scratch });
    expect(said.ok).toBe(true);
    expect(said.output).toMatch(new RegExp(`^${scratch}/run-`));
    expect(existsSync(scratch)).toBe(false);
  });

  test('leaves alone what one whose server was killed may still use, and removes it when that is long ago', async () => {
    for (const name of ['run-young', 'run-old']) mkdirSync(join(scratch, name, 'build'), { recursive: true });
    utimesSync(join(scratch, 'run-old'), 1, 1);
    await runCommand(sh('true'), { timeout: 10_000, scratch });
    expect(readdirSync(scratch)).toEqual(['run-young']);
  });

  test('that is stopped leaves neither processes nor temporary files', async () => {
    const stop = new AbortController();
    const script = 'mktemp >/dev/null; sleep 600 & echo $!; wait';
    const onLine = (line: string) => {
      if (/^\d+$/.test(line)) stop.abort();
    };
    const said = await runCommand(sh(script), { timeout: 60_000, signal: stop.signal, scratch, onLine });
    expect(said.ok).toBe(false);
    await gone(Number(said.output));
    expect(existsSync(scratch)).toBe(false);
  });

  test('that takes too long is stopped, and says so', async () => {
    const said = await runCommand(sh('exec sleep 600'), { timeout: 50, scratch });
    expect(said).toEqual({ ok: false, output: 'It took too long and was stopped.' });
  });
});

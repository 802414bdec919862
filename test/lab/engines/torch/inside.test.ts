import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, inject, it } from 'vitest';
import { packageFile } from '../../../../src/package-root.ts';

it('passes the tests of its Python side: every architecture, memory, the wire', async () => {
  const tests = ['-m', 'unittest', 'discover', '-v', '-s', packageFile('python', 'torch_tests')];
  const { stderr } = await promisify(execFile)(inject('torchPython'), tests).catch((error) => error);
  expect(stderr).toMatch(/\nOK\n$/);
});

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, inject, it } from 'vitest';
import { packageFile } from '../../../../src/package-root.ts';

const rich = inject('richTorchPython');

describe('the Python side of the torch engine passes its own tests:', () => {
  it('every architecture, memory, the wire', async () => {
    expect(await runTests(inject('torchPython'), 'test_*.py')).toMatch(/\nOK( \(skipped=3\))?\n$/);
  });

  it.skipIf(rich === null)('a model whose blocks are in several places', async () => {
    expect(await runTests(rich ?? '', 'test_offloaded_model.py')).toMatch(/\nOK\n$/);
  });
});

async function runTests(python: string, pattern: string): Promise<string> {
  const tests = ['-m', 'unittest', 'discover', '-v', '-s', packageFile('python', 'torch_tests'), '-p', pattern];
  const { stderr } = await promisify(execFile)(python, tests).catch((error) => error);
  return stderr;
}

import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Output } from '../../src/interpreters/interpreter.ts';
import { createTranscript } from '../../src/sessions/transcript.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const print = (text: string, name: 'stdout' | 'stderr' = 'stdout'): Output => ({ type: 'stream', name, text });

function show(text: string, displayId?: string, update?: boolean): Output {
  return {
    type: 'display',
    data: { 'text/plain': text },
    metadata: {},
    ...(displayId !== undefined && { displayId }),
    ...(update !== undefined && { update }),
  };
}

function newTranscript(limit = 100) {
  const path = join(temporaryFolder(), 'session', 'output-1.txt');
  return { path, transcript: createTranscript({ path, limit }) };
}

describe('a short transcript', () => {
  it('stays in memory', async () => {
    const { path, transcript } = newTranscript();
    transcript.add(print('hello\n'));
    expect(await transcript.flush()).toBe(0);
    expect(transcript).toMatchObject({ length: 6, file: null });
    expect(transcript.head(100)).toBe('hello\n');
    expect(existsSync(path)).toBe(false);
  });

  it('gives its first and its last characters', () => {
    const { transcript } = newTranscript();
    for (const text of ['abc', 'def', 'ghi']) transcript.add(print(text));
    expect(transcript.head(4)).toBe('abcd');
    expect(transcript.tail(4)).toBe('fghi');
  });

  it('at its limit to the character still stays in memory', async () => {
    const { path, transcript } = newTranscript();
    transcript.add(print('x'.repeat(100)));
    await transcript.flush();
    expect(transcript.file).toBeNull();
    expect(existsSync(path)).toBe(false);
  });
});

describe('a transcript longer than an answer', () => {
  it('goes to a file that only its owner can read, whole', async () => {
    const { path, transcript } = newTranscript();
    const parts = Array.from({ length: 50 }, (_, index) => `line ${index} żółw 🐢\n`);
    for (const part of parts) transcript.add(print(part));
    await transcript.flush();
    expect(transcript.file).toBe(path);
    expect(readFileSync(path, 'utf8')).toBe(parts.join(''));
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(await transcript.flush()).toBe(statSync(path).size);
    expect(transcript.length).toBe(parts.join('').length);
  });

  it('has each part in its file once, however often it is flushed', async () => {
    const { path, transcript } = newTranscript();
    const flushes: Promise<number>[] = [];
    for (let index = 0; index < 20; index++) {
      transcript.add(print(`${index} ${'x'.repeat(20)}\n`));
      flushes.push(transcript.flush(), transcript.flush());
    }
    await Promise.all(flushes);
    const lines = readFileSync(path, 'utf8').trim().split('\n');
    expect(lines.map((line) => Number(line.split(' ')[0]))).toEqual([...Array(20).keys()]);
  });

  it('still knows its first and its last characters', () => {
    const { transcript } = newTranscript();
    transcript.add(print('first'));
    transcript.add(print('x'.repeat(1000)));
    transcript.add(print('last'));
    expect(transcript.head(5)).toBe('first');
    expect(transcript.tail(4)).toBe('last');
  });
});

describe('the outputs that a transcript keeps', () => {
  it('join what one stream printed, and keep the order of the streams', () => {
    const { transcript } = newTranscript();
    transcript.add(print('a'));
    transcript.add(print('b'));
    transcript.add(print('!', 'stderr'));
    transcript.add(print('c'));
    expect(transcript.outputs).toEqual([print('ab'), print('!', 'stderr'), print('c')]);
  });

  it('hold no more than 64,000 printed characters, while the file has all', async () => {
    const { path, transcript } = newTranscript();
    for (let index = 0; index < 100; index++) transcript.add(print('x'.repeat(1000)));
    await transcript.flush();
    const kept = transcript.outputs.reduce(
      (sum, output) => sum + (output.type === 'stream' ? output.text.length : 0),
      0,
    );
    expect(kept).toBe(64_000);
    expect(statSync(path).size).toBe(100_000);
  });

  it('are no more than 500, and their text is still counted', () => {
    const { transcript } = newTranscript(100_000);
    for (let index = 0; index < 600; index++) transcript.add(show(`${index}`.padStart(3, '0')));
    expect(transcript.outputs).toHaveLength(500);
    expect(transcript.length).toBe(600 * 4);
  });

  it('leave out a picture that would take too much room, and keep a smaller one after it', () => {
    const { transcript } = newTranscript();
    const picture = (size: number): Output => ({
      type: 'display',
      data: { 'image/png': 'A'.repeat(size) },
      metadata: {},
    });
    transcript.add(picture(20_000_000));
    transcript.add(picture(10_000_000));
    transcript.add(picture(100));
    expect(transcript.outputs).toHaveLength(2);
  });

  it('do not change an output that its sender still holds', () => {
    const { transcript } = newTranscript();
    const first = print('a');
    transcript.add(first);
    transcript.add(print('b'));
    expect(first).toEqual(print('a'));
  });
});

describe('an update of a display', () => {
  it('takes the place of what it updates', () => {
    const { transcript } = newTranscript();
    transcript.add(show('0 %', 'bar'));
    transcript.add(print('between\n'));
    transcript.add(show('50 %', 'bar', true));
    transcript.add(show('100 %', 'bar', true));
    expect(transcript.outputs).toEqual([show('100 %', 'bar', true), print('between\n')]);
  });

  it('leaves other things alone', () => {
    const { transcript } = newTranscript();
    transcript.add(show('one', 'a'));
    transcript.add(show('two', 'b'));
    transcript.add(show('TWO', 'b', true));
    expect(transcript.outputs).toEqual([show('one', 'a'), show('TWO', 'b', true)]);
  });

  it('of something that is not there is shown itself', () => {
    const { transcript } = newTranscript();
    transcript.add(show('late', 'gone', true));
    expect(transcript.outputs).toEqual([show('late', 'gone', true)]);
  });
});

describe('a transcript that a later server picks up', () => {
  it('goes on in memory where it stood', async () => {
    const path = join(temporaryFolder(), 'output-1.txt');
    const resume = { outputs: [print('before ')], text: 'before ', length: 7, file: null, bytes: 0 };
    const transcript = createTranscript({ path, limit: 10, resume });
    transcript.add(print('after'));
    await transcript.flush();
    expect(transcript.length).toBe(12);
    expect(transcript.outputs).toEqual([print('before after')]);
    expect(readFileSync(path, 'utf8')).toBe('before after');
  });

  it('cuts off what was written to its file but not recorded, and takes it when it comes again', async () => {
    const path = join(temporaryFolder(), 'output-1.txt');
    writeFileSync(path, 'noted 🐢\nwritten, not noted\n');
    const noted = 'noted 🐢\n';
    const resume = {
      outputs: [print(noted)],
      text: noted.slice(0, 5),
      length: noted.length,
      file: path,
      bytes: Buffer.byteLength(noted),
    };
    const transcript = createTranscript({ path, limit: 5, resume });
    transcript.add(print('written, not noted\n'));
    transcript.add(print('more\n'));
    await transcript.flush();
    expect(readFileSync(path, 'utf8')).toBe('noted 🐢\nwritten, not noted\nmore\n');
    expect(await transcript.flush()).toBe(statSync(path).size);
  });

  it('does not write again what its file already has', async () => {
    const path = join(temporaryFolder(), 'output-1.txt');
    const text = 'x'.repeat(50);
    writeFileSync(path, text);
    const resume = { outputs: [print(text)], text: text.slice(0, 10), length: 50, file: path, bytes: 50 };
    const transcript = createTranscript({ path, limit: 10, resume });
    await transcript.flush();
    expect(readFileSync(path, 'utf8')).toBe(text);
    expect(await transcript.flush()).toBe(50);
  });

  it('still knows the last characters of what its file has', async () => {
    const path = join(temporaryFolder(), 'output-1.txt');
    const text = `first ${'x'.repeat(50)} last`;
    writeFileSync(path, text);
    const resume = {
      outputs: [print(text)],
      text: text.slice(0, 10),
      length: text.length,
      file: path,
      bytes: text.length,
    };
    const transcript = createTranscript({ path, limit: 10, resume });
    await transcript.flush();
    expect(transcript.tail(4)).toBe('last');
  });
});

describe('a transcript whose file cannot be written', () => {
  it('fails to flush, and has everything in its file in order once it can be written', async () => {
    const { path, transcript } = newTranscript(5);
    mkdirSync(path, { recursive: true });
    transcript.add(print('first, too long for memory\n'));
    await expect(transcript.flush()).rejects.toThrow('EISDIR');
    transcript.add(print('second\n'));
    const failed = [transcript.flush(), transcript.flush()];
    expect((await Promise.allSettled(failed)).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    rmdirSync(path);
    transcript.add(print('third\n'));
    expect(await transcript.flush()).toBe(statSync(path).size);
    expect(readFileSync(path, 'utf8')).toBe('first, too long for memory\nsecond\nthird\n');
  });

  it.runIf(existsSync('/dev/full'))(
    'for want of room writes again what was written in part, and nothing twice',
    async () => {
      const { path, transcript } = newTranscript(5);
      transcript.add(print('0123456789\n'));
      await transcript.flush();
      renameSync(path, `${path}.real`);
      symlinkSync('/dev/full', path);
      transcript.add(print('abcdefghij\n'));
      await expect(transcript.flush()).rejects.toThrow('ENOSPC');
      rmSync(path);
      renameSync(`${path}.real`, path);
      appendFileSync(path, 'abcd'); // As far as the disk had room.
      expect(await transcript.flush()).toBe(22);
      expect(readFileSync(path, 'utf8')).toBe('0123456789\nabcdefghij\n');
    },
  );
});

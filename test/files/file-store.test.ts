import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type FileStore, openFileStore, type StoredFile } from '../../src/files/file-store.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { repeat } from './hostile.ts';
import { createWorkspace } from './workspace.ts';

const SESSION = 'S'.repeat(21);

function open(folder = join(temporaryFolder(), 'files')): { store: FileStore; folder: string } {
  const store = openFileStore({ folder });
  onTestFinished(() => {
    try {
      store.close();
    } catch {}
  });
  return { store, folder };
}

async function* chunks(...parts: (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) yield typeof part === 'string' ? Buffer.from(part) : part;
}

type Receive = Parameters<FileStore['receive']>[0];

function receive(store: FileStore, different: Partial<Receive> = {}): Promise<StoredFile> {
  return store.receive({
    session: SESSION,
    owner: 'ada',
    name: 'a.txt',
    limit: 1_000_000,
    source: chunks('hello ', 'world'),
    ...different,
  });
}

function makeFifo(path: string): void {
  execFileSync('python3', ['-c', 'import os, sys; os.mkfifo(sys.argv[1])', path]);
}

function keep(store: FileStore, path: string, name: string, limit?: number): Promise<StoredFile> {
  return store.keep({ session: SESSION, owner: 'ada', name, path, ...(limit === undefined ? {} : { limit }) });
}

/** Every file under the store's folder but the database's. */
function bytesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.startsWith('files.db'))
    .map((entry) => join(entry.parentPath, entry.name));
}

describe('receiving an uploaded file', () => {
  it('keeps its bytes and tells of them', async () => {
    const { store } = open();
    const file = await receive(store, { name: 'in/données 1.csv', contentType: 'text/csv; charset=utf-8' });
    expect(file).toMatchObject({
      session: SESSION,
      owner: 'ada',
      name: 'in/données 1.csv',
      size: 11,
      contentType: 'text/csv',
      etag: createHash('sha256').update('hello world').digest('hex').slice(0, 32),
      readOnly: false,
      origin: 'upload',
    });
    expect(file.id).toMatch(/^[A-Za-z0-9_-]{21}$/);
    expect(Math.abs(Date.now() - file.createdAt)).toBeLessThan(5000);
    expect(readFileSync(store.pathOf(file), 'utf8')).toBe('hello world');
    expect(store.get(SESSION, file.id)).toEqual(file);
  });

  it('takes empty files', async () => {
    const { store } = open();
    const file = await receive(store, { source: chunks() });
    expect(file.size).toBe(0);
    expect(statSync(store.pathOf(file)).size).toBe(0);
  });

  it('guesses the type from the name when the sender names none, or nonsense', async () => {
    const { store } = open();
    expect((await receive(store, { name: 'a.png' })).contentType).toBe('image/png');
    expect((await receive(store, { name: 'a.png', contentType: 'x\r\nSet-Cookie: y' })).contentType).toBe('image/png');
    expect((await receive(store, { name: 'a.qqq' })).contentType).toBe('application/octet-stream');
  });

  it('holds two files of one name', async () => {
    const { store } = open();
    const first = await receive(store, { source: chunks('1') });
    const second = await receive(store, { source: chunks('22') });
    expect(store.list(SESSION)).toEqual([first, second]);
    expect(store.usage(SESSION)).toBe(3);
  });

  it('refuses what is over the limit, says the limit, and leaves nothing behind', async () => {
    const { store, folder } = open();
    await expect(receive(store, { limit: 10 })).rejects.toMatchObject({
      code: 'too_large',
      message: expect.stringContaining('10 bytes'),
    });
    expect(bytesIn(folder)).toEqual([]);
    expect(store.list(SESSION)).toEqual([]);
    expect((await receive(store, { limit: 11 })).size).toBe(11);
  });

  it('leaves nothing behind when the sender breaks off', async () => {
    const { store, folder } = open();
    async function* broken() {
      yield Buffer.from('half');
      throw new Error('gone');
    }
    await expect(receive(store, { source: broken() })).rejects.toThrow('gone');
    expect(bytesIn(folder)).toEqual([]);
    expect(store.list(SESSION)).toEqual([]);
  });

  it('ends when it is aborted, even if the sender says nothing more', async () => {
    const { store, folder } = open();
    const controller = new AbortController();
    async function* silent() {
      yield Buffer.from('half');
      setTimeout(() => controller.abort(), 20);
      await new Promise((resolve) => setTimeout(resolve, 3_600_000).unref());
    }
    await expect(receive(store, { source: silent(), signal: controller.signal })).rejects.toThrow(/abort/i);
    expect(bytesIn(folder)).toEqual([]);
  });

  it('refuses names and sessions that lead out of the store', async () => {
    const { store, folder } = open();
    await expect(receive(store, { name: '../x' })).rejects.toMatchObject({ code: 'invalid_input' });
    await expect(receive(store, { session: '../x' })).rejects.toMatchObject({ code: 'invalid_input' });
    expect(bytesIn(folder)).toEqual([]);
  });

  it('has any bytes, cut anywhere, as they were sent', async () => {
    const { store } = open();
    await fc.assert(
      fc.asyncProperty(fc.array(fc.uint8Array({ maxLength: 5000 }), { maxLength: 8 }), async (parts) => {
        const file = await receive(store, { source: chunks(...parts) });
        expect(readFileSync(store.pathOf(file)).equals(Buffer.concat(parts))).toBe(true);
      }),
      { numRuns: 50 },
    );
  });
});

describe('keeping an output', () => {
  it('copies the file as it is, whatever happens to it later', async () => {
    const { store } = open();
    const { put } = createWorkspace();
    const path = put('out/plot.png', 'pixels');
    const file = await keep(store, path, 'out/plot.png');
    writeFileSync(path, 'changed');
    expect(file).toMatchObject({ name: 'out/plot.png', size: 6, origin: 'output', contentType: 'image/png' });
    expect(file.etag).toBe(createHash('sha256').update('pixels').digest('hex').slice(0, 32));
    expect(readFileSync(store.pathOf(file), 'utf8')).toBe('pixels');
  });

  it('keeps the content of a hard link', async () => {
    const { store } = open();
    const { root, put } = createWorkspace();
    linkSync(put('a.txt', 'same'), join(root, 'b.txt'));
    const file = await keep(store, join(root, 'b.txt'), 'b.txt');
    writeFileSync(join(root, 'a.txt'), 'diff');
    expect(readFileSync(store.pathOf(file), 'utf8')).toBe('same');
    expect(statSync(store.pathOf(file)).nlink).toBe(1);
  });

  it('does not take over the mode of the file', async () => {
    const { store } = open();
    const { put } = createWorkspace();
    const path = put('run.sh', 'x');
    chmodSync(path, 0o4777);
    const file = await keep(store, path, 'run.sh');
    expect(statSync(store.pathOf(file)).mode & 0o7777).toBe(0o600);
  });

  it('refuses symlinks, to a file or on the way to it', async () => {
    const { store, folder } = open();
    const { root, outside } = createWorkspace();
    symlinkSync(join(outside, 'secret.txt'), join(root, 'link.txt'));
    symlinkSync(outside, join(root, 'folder'));
    symlinkSync('/nowhere', join(root, 'dangling'));
    for (const name of ['link.txt', 'folder/secret.txt', 'dangling']) {
      await expect(keep(store, join(root, name), name)).rejects.toMatchObject({ code: 'invalid_input' });
    }
    expect(bytesIn(folder)).toEqual([]);
  });

  it('refuses FIFOs, devices, sockets and folders without waiting for them', async () => {
    const { store, folder } = open();
    const { root } = createWorkspace();
    makeFifo(join(root, 'fifo'));
    mkdirSync(join(root, 'sub'));
    const socket = join(root, 'socket');
    spawnSync('python3', ['-c', `import socket; socket.socket(socket.AF_UNIX).bind(${JSON.stringify(socket)})`]);
    for (const name of ['fifo', 'sub', 'socket']) {
      await expect(keep(store, join(root, name), name)).rejects.toMatchObject({ code: 'invalid_input' });
    }
    await expect(keep(store, '/dev/zero', 'zero')).rejects.toMatchObject({ code: 'invalid_input' });
    expect(bytesIn(folder)).toEqual([]);
  });

  it('says so when the file is gone', async () => {
    const { store } = open();
    const { root } = createWorkspace();
    await expect(keep(store, join(root, 'x.txt'), 'x.txt')).rejects.toMatchObject({ code: 'unknown_file' });
  });

  it('refuses a sparse file that is larger than the limit without reading it', async () => {
    const { store, folder } = open();
    const { put } = createWorkspace();
    const path = put('huge.bin', '');
    truncateSync(path, 5_000_000_000_000);
    await expect(keep(store, path, 'huge.bin', 1_000_000)).rejects.toMatchObject({ code: 'too_large' });
    expect(bytesIn(folder)).toEqual([]);
  });

  it('ends when the file is cut short in the middle of the copy', async () => {
    const { store } = open();
    const { put } = createWorkspace();
    const path = put('shrinking.bin', '');
    truncateSync(path, 300_000_000);
    const kept = keep(store, path, 'shrinking.bin');
    setTimeout(() => truncateSync(path, 1000), 20);
    const file = await kept;
    expect(statSync(store.pathOf(file)).size).toBe(file.size);
  });

  it('gives large files an etag that does not cost a reading', async () => {
    const { store } = open();
    const { put } = createWorkspace();
    const path = put('large.bin', '');
    truncateSync(path, 65 * 1024 * 1024);
    const file = await keep(store, path, 'large.bin');
    expect(file.size).toBe(65 * 1024 * 1024);
    expect(file.etag).toMatch(/^4100000-[0-9a-f]+$/);
  });
});

describe('copying a stored file into a workspace', () => {
  it('makes the folders on the way, and replaces what is there', async () => {
    const { store } = open();
    const { root, put } = createWorkspace();
    const file = await receive(store);
    await store.copyIntoWorkspace(file, root, 'deep/er/a.txt');
    put('deep/b.txt', 'old');
    await store.copyIntoWorkspace(file, root, '/mnt/data/deep/b.txt');
    expect(readFileSync(join(root, 'deep/er/a.txt'), 'utf8')).toBe('hello world');
    expect(readFileSync(join(root, 'deep/b.txt'), 'utf8')).toBe('hello world');
    expect(readdirSync(join(root, 'deep')).sort()).toEqual(['b.txt', 'er']);
    expect(statSync(join(root, 'deep/b.txt')).mode & 0o777).toBe(0o644);
  });

  it('gives read-only files a mode that says so, and can replace them', async () => {
    const { store } = open();
    const { root } = createWorkspace();
    const file = await receive(store, { readOnly: true });
    await store.copyIntoWorkspace(file, root, 'a.txt');
    await store.copyIntoWorkspace(file, root, 'a.txt');
    expect(statSync(join(root, 'a.txt')).mode & 0o777).toBe(0o444);
  });

  it('leaves the stored bytes alone when the copy is changed', async () => {
    const { store } = open();
    const { root } = createWorkspace();
    const file = await receive(store);
    await store.copyIntoWorkspace(file, root, 'a.txt');
    writeFileSync(join(root, 'a.txt'), 'changed');
    expect(readFileSync(store.pathOf(file), 'utf8')).toBe('hello world');
  });

  it('replaces a symlink instead of writing through it', async () => {
    const { store } = open();
    const { root, outside } = createWorkspace();
    const file = await receive(store);
    symlinkSync(join(outside, 'secret.txt'), join(root, 'a.txt'));
    symlinkSync(join(outside, 'new.txt'), join(root, 'b.txt'));
    symlinkSync(outside, join(root, 'c.txt'));
    for (const name of ['a.txt', 'b.txt', 'c.txt']) {
      await store.copyIntoWorkspace(file, root, name);
      expect(lstatSync(join(root, name)).isFile()).toBe(true);
    }
    expect(readFileSync(join(outside, 'secret.txt'), 'utf8')).toBe('secret');
    expect(readdirSync(outside)).toEqual(['secret.txt']);
  });

  it('replaces a hard link instead of writing through it', async () => {
    const { store } = open();
    const { root, outside } = createWorkspace();
    linkSync(join(outside, 'secret.txt'), join(root, 'a.txt'));
    await store.copyIntoWorkspace(await receive(store), root, 'a.txt');
    expect(readFileSync(join(outside, 'secret.txt'), 'utf8')).toBe('secret');
    expect(readFileSync(join(root, 'a.txt'), 'utf8')).toBe('hello world');
  });

  it('replaces a FIFO without waiting for a reader', async () => {
    const { store } = open();
    const { root } = createWorkspace();
    makeFifo(join(root, 'a.txt'));
    await store.copyIntoWorkspace(await receive(store), root, 'a.txt');
    expect(readFileSync(join(root, 'a.txt'), 'utf8')).toBe('hello world');
  });

  it('refuses to go through a symlink, and names it', async () => {
    const { store } = open();
    const { root, outside, put } = createWorkspace();
    const file = await receive(store);
    symlinkSync(outside, join(root, 'out'));
    put('real/x', '');
    symlinkSync(outside, join(root, 'real/deeper'));
    symlinkSync('/nowhere', join(root, 'dangling'));
    for (const [name, named] of [
      ['out/new.txt', 'out is a symlink'],
      ['real/deeper/new.txt', 'real/deeper is a symlink'],
      ['dangling/new.txt', 'dangling is a symlink'],
    ] as const) {
      await expect(store.copyIntoWorkspace(file, root, name)).rejects.toMatchObject({
        code: 'invalid_input',
        message: expect.stringContaining(named),
      });
    }
    expect(readdirSync(outside)).toEqual(['secret.txt']);
  });

  it('refuses when a file or a FIFO stands where a folder is needed, or a folder where the file goes', async () => {
    const { store } = open();
    const { root, put } = createWorkspace();
    const file = await receive(store);
    put('plain', 'text');
    put('full/x', '');
    mkdirSync(join(root, 'empty'));
    makeFifo(join(root, 'fifo'));
    for (const [name, named] of [
      ['plain/a.txt', 'plain is not a folder'],
      ['fifo/a.txt', 'fifo is not a folder'],
      ['full', 'full is a folder'],
      ['empty', 'empty is a folder'],
    ] as const) {
      await expect(store.copyIntoWorkspace(file, root, name)).rejects.toMatchObject({
        code: 'invalid_input',
        message: expect.stringContaining(named),
      });
    }
    expect(readFileSync(join(root, 'plain'), 'utf8')).toBe('text');
    expect(readdirSync(root).sort()).toEqual(['empty', 'fifo', 'full', 'plain']);
  });

  it.runIf(process.platform === 'linux')(
    'writes nothing outside while code swaps a folder for a symlink all the time',
    async () => {
      const { store } = open();
      const { root, outside } = createWorkspace();
      const file = await receive(store);
      const swap = [
        'fs.mkdirSync(d)',
        'fs.renameSync(d, d + Math.random())',
        'fs.symlinkSync(outside, d)',
        'fs.unlinkSync(d)',
      ];
      await repeat(swap, { d: join(root, 'd'), outside });
      let refused = 0;
      for (let count = 0; count < 400; count++) {
        await store.copyIntoWorkspace(file, root, 'd/new.txt').catch(() => refused++);
      }
      expect(refused).toBeGreaterThan(0);
      expect(readdirSync(outside)).toEqual(['secret.txt']);
    },
  );
});

describe('a stored file', () => {
  it('is still there when the next server opens the store', async () => {
    const { store, folder } = open();
    const file = await receive(store);
    store.close();
    const next = open(folder).store;
    expect(next.list(SESSION)).toEqual([file]);
    expect(readFileSync(next.pathOf(file), 'utf8')).toBe('hello world');
  });

  it('cannot be read by other users', async () => {
    const { store, folder } = open();
    const file = await receive(store);
    expect(statSync(folder).mode & 0o077).toBe(0);
    expect(statSync(store.pathOf(file)).mode & 0o077).toBe(0);
  });

  it('is found by its own session only', async () => {
    const { store } = open();
    const file = await receive(store);
    expect(store.get('other', file.id)).toBeUndefined();
    expect(store.remove('other', file.id)).toBe(false);
    expect(store.list('other')).toEqual([]);
    expect(store.ownerOf(SESSION)).toBe('ada');
    expect(store.ownerOf('other')).toBeUndefined();
  });

  it('is gone with its bytes once it is removed', async () => {
    const { store, folder } = open();
    const file = await receive(store);
    const other = await receive(store);
    expect(store.remove(SESSION, file.id)).toBe(true);
    expect(store.remove(SESSION, file.id)).toBe(false);
    expect(store.get(SESSION, file.id)).toBeUndefined();
    expect(store.list(SESSION)).toEqual([other]);
    await expect.poll(() => bytesIn(folder)).toEqual([store.pathOf(other)]);
    store.removeSession(SESSION);
    await expect.poll(() => bytesIn(folder)).toEqual([]);
    await expect.poll(() => readdirSync(join(folder, 'objects'))).toEqual([]);
    expect(store.usage(SESSION)).toBe(0);
  });

  it('expires by whole sessions, judged by the newest file', async () => {
    const { store, folder } = open();
    await receive(store, { session: 'old' });
    await receive(store, { session: 'mixed' });
    await new Promise((resolve) => setTimeout(resolve, 5));
    const between = Date.now();
    await new Promise((resolve) => setTimeout(resolve, 5));
    await receive(store, { session: 'mixed' });
    expect(store.expire(between)).toBe(1);
    expect(store.list('old')).toEqual([]);
    expect(store.list('mixed')).toHaveLength(2);
    await expect.poll(() => bytesIn(folder)).toHaveLength(2);
    expect(store.expire(between)).toBe(0);
  });

  it('is taken in while its session is emptied', async () => {
    const { store } = open();
    const received: StoredFile[] = [];
    for (let count = 0; count < 40; count++) {
      const arriving = receive(store);
      store.removeSession(SESSION);
      received.push(await arriving);
    }
    for (const file of store.list(SESSION)) expect(existsSync(store.pathOf(file))).toBe(true);
    expect(received).toHaveLength(40);
  });
});

describe('a file store that is opened after a crash', () => {
  it('removes what was half received, but not what a running server is receiving', async () => {
    const { store, folder } = open();
    const dead = spawnSync(process.execPath, ['--version']).pid;
    mkdirSync(join(folder, 'incoming', `${dead}-12345`));
    writeFileSync(join(folder, 'incoming', `${dead}-12345`, 'half'), 'half');
    mkdirSync(join(folder, 'incoming', `${process.pid}-1`));
    writeFileSync(join(folder, 'incoming', `${process.pid}-1`, 'of an earlier process'), 'half');
    let letGo = () => {};
    const held = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    async function* slow() {
      yield Buffer.from('first ');
      await held;
      yield Buffer.from('second');
    }
    const arriving = receive(store, { source: slow() });
    await expect.poll(() => bytesIn(folder)).toHaveLength(3);

    open(folder);
    await expect.poll(() => bytesIn(folder)).toHaveLength(1);
    letGo();
    const file = await arriving;
    expect(readFileSync(store.pathOf(file), 'utf8')).toBe('first second');
  });

  it('removes bytes that belong to no row, once they are old', async () => {
    const { store, folder } = open();
    const file = await receive(store);
    store.close();
    const lost = join(folder, 'objects', SESSION, 'L'.repeat(21));
    const fresh = join(folder, 'objects', SESSION, 'F'.repeat(21));
    const alone = join(folder, 'objects', 'A'.repeat(21), 'L'.repeat(21));
    mkdirSync(dirname(alone));
    for (const path of [lost, fresh, alone, store.pathOf(file)]) {
      writeFileSync(path, 'x');
      if (path !== fresh) utimesSync(path, 1000, 1000);
    }
    open(folder);
    await expect.poll(() => bytesIn(folder).sort()).toEqual([fresh, store.pathOf(file)].sort());
  });
});

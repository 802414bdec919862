import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { findProcess } from '../../../src/process-tree.ts';
import { readRecords, type ServerRecord, writeRecord } from '../../../src/surfaces/bridge/server-record.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

function record(different: Partial<ServerRecord> = {}): ServerRecord {
  return {
    pid: process.pid,
    started: findProcess(process.pid)?.started ?? '',
    version: '0.0.0',
    kind: 'agent',
    lineage: [],
    project: '/project',
    socket: '/nowhere.sock',
    ...different,
  };
}

function deadPid(): number {
  return spawnSync('true').pid;
}

describe('the record of a server', () => {
  it('is found while its server runs', () => {
    const runtime = temporaryFolder();
    writeRecord(runtime, record());
    expect(readRecords(runtime)).toEqual([record()]);
  });

  it('can be read by its owner only', () => {
    const runtime = temporaryFolder();
    writeRecord(runtime, record());
    const folder = join(runtime, 'servers');
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    expect(readdirSync(folder)).toEqual([`${process.pid}.json`]);
    expect(statSync(join(folder, `${process.pid}.json`)).mode & 0o777).toBe(0o600);
  });

  it('is gone after its server removed it', () => {
    const runtime = temporaryFolder();
    const remove = writeRecord(runtime, record());
    remove();
    expect(readRecords(runtime)).toEqual([]);
    expect(readdirSync(join(runtime, 'servers'))).toEqual([]);
  });

  it('is replaced when the server writes it again', () => {
    const runtime = temporaryFolder();
    writeRecord(runtime, record());
    writeRecord(runtime, record({ project: '/other' }));
    expect(readRecords(runtime)).toEqual([record({ project: '/other' })]);
  });

  it('of a server that was killed is removed, and its socket too', async () => {
    const runtime = temporaryFolder();
    const socket = join(runtime, 'dead.sock');
    writeFileSync(socket, '');
    writeRecord(runtime, record({ pid: deadPid(), started: '1', socket }));
    expect(readRecords(runtime)).toEqual([]);
    expect(readdirSync(join(runtime, 'servers'))).toEqual([]);
    expect(existsSync(socket)).toBe(false);
  });

  it('of a killed server whose pid is in use again is removed', () => {
    const runtime = temporaryFolder();
    writeRecord(runtime, record({ started: 'at another time' }));
    expect(readRecords(runtime)).toEqual([]);
    expect(readdirSync(join(runtime, 'servers'))).toEqual([]);
  });

  it('that is broken is removed, and does not hide the others', () => {
    const runtime = temporaryFolder();
    writeRecord(runtime, record());
    writeFileSync(join(runtime, 'servers', '1.json'), '{"pid": 1, "sta');
    expect(readRecords(runtime)).toEqual([record()]);
    expect(readdirSync(join(runtime, 'servers'))).toEqual([`${process.pid}.json`]);
  });

  it('of a running server keeps its socket', async () => {
    const runtime = temporaryFolder();
    const socket = join(runtime, 'live.sock');
    const server = createServer();
    onTestFinished(() => void server.close());
    await new Promise<void>((resolve) => server.listen(socket, resolve));
    writeRecord(runtime, record({ socket }));
    readRecords(runtime);
    expect(existsSync(socket)).toBe(true);
  });
});

describe('a runtime folder', () => {
  it('without servers has no records', () => {
    expect(readRecords(join(temporaryFolder(), 'not-there'))).toEqual([]);
  });

  it('may hold other files, which stay', () => {
    const runtime = temporaryFolder();
    mkdirSync(join(runtime, 'servers'));
    writeFileSync(join(runtime, 'servers', '5.json.new'), '{');
    expect(readRecords(runtime)).toEqual([]);
    expect(existsSync(join(runtime, 'servers', '5.json.new'))).toBe(true);
  });
});

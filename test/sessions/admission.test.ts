import { describe, expect, it } from 'vitest';
import { CuvetteError } from '../../src/errors.ts';
import { createAdmission, retryAfterOf } from '../../src/sessions/admission.ts';
import type { ExecutionRecord } from '../../src/sessions/execution-record.ts';
import { makeRecord } from './make-record.ts';

const ANN = 'user:ann';
const BEN = 'user:ben';

function admissionAt(limits: { rateLimit?: number; maxRunning?: number }) {
  const clock = { seconds: 0 };
  const ended: ExecutionRecord[] = [];
  const admission = createAdmission({
    rateLimit: 0,
    maxRunning: 0,
    ...limits,
    onEnded: (record) => ended.push(record),
    now: () => clock.seconds * 1000,
  });

  /** Starts an execution; gives what ends it, or the seconds to wait if it was refused. */
  async function start(caller: string): Promise<{ end: () => Promise<void> } | number | undefined> {
    let end: (result: { record: ExecutionRecord }) => void = () => {};
    const finished = new Promise<{ record: ExecutionRecord }>((resolve) => {
      end = resolve;
    });
    try {
      await admission.admit(caller, async () => ({ finished }));
    } catch (error) {
      expect(error).toMatchObject({ code: 'rate_limited', status: 429 });
      return error instanceof CuvetteError ? retryAfterOf(error) : undefined;
    }
    return {
      async end() {
        end({ record: makeRecord() });
        await finished;
        await new Promise(setImmediate);
      },
    };
  }
  const admitted = async (caller: string) => {
    const started = await start(caller);
    if (typeof started === 'object') return started;
    throw new Error(`refused: ${started}`);
  };
  return { admission, clock, ended, start, admitted };
}

it('admission without limits admits every execution', async () => {
  const { admitted } = admissionAt({});
  for (let i = 0; i < 1000; i++) await admitted(ANN);
});

it('admission reports each execution that has ended, once', async () => {
  const { admitted, ended } = admissionAt({});
  const first = await admitted(ANN);
  await admitted(ANN);
  expect(ended).toEqual([]);
  await first.end();
  expect(ended).toHaveLength(1);
});

it('admission does not count an execution that could not start', async () => {
  const { admission, admitted } = admissionAt({ maxRunning: 1 });
  const failing = admission.admit(ANN, async () => Promise.reject(new Error('no interpreter')));
  await expect(failing).rejects.toThrow('no interpreter');
  await admitted(ANN);
});

it('admission no longer counts an execution that failed', async () => {
  const { admission, admitted } = admissionAt({ maxRunning: 1 });
  const { finished } = await admission.admit(ANN, async () => ({
    finished: Promise.reject<{ record: ExecutionRecord }>(new Error('disk full')),
  }));
  await expect(finished).rejects.toThrow('disk full');
  await new Promise(setImmediate);
  await admitted(ANN);
});

describe('a limit of executions in a minute', () => {
  it('counts the last sixty seconds, not minutes of the clock', async () => {
    const { clock, start, admitted } = admissionAt({ rateLimit: 2 });
    await admitted(ANN);
    clock.seconds = 50;
    await admitted(ANN);
    clock.seconds = 59;
    expect(await start(ANN)).toBe(1);
    clock.seconds = 60;
    await admitted(ANN);
    expect(await start(ANN)).toBe(50);
  });

  it('does not count executions that were refused', async () => {
    const { clock, start, admitted } = admissionAt({ rateLimit: 1 });
    await admitted(ANN);
    for (clock.seconds = 1; clock.seconds < 60; clock.seconds++) expect(await start(ANN)).toBe(60 - clock.seconds);
    await admitted(ANN);
  });

  it('counts executions that have ended', async () => {
    const { start, admitted } = admissionAt({ rateLimit: 1 });
    await (await admitted(ANN)).end();
    expect(await start(ANN)).toBe(60);
  });

  it('counts each caller alone', async () => {
    const { start, admitted } = admissionAt({ rateLimit: 1 });
    await admitted(ANN);
    await admitted(BEN);
    expect(await start(ANN)).toBe(60);
  });
});

describe('a limit of executions at once', () => {
  it('admits another execution when one has ended, however much later', async () => {
    const { clock, start, admitted } = admissionAt({ maxRunning: 2 });
    const first = await admitted(ANN);
    await admitted(ANN);
    expect(await start(ANN)).toBe(1);
    clock.seconds = 500;
    expect(await start(ANN)).toBe(1);
    await admitted(BEN);
    await first.end();
    await admitted(ANN);
    expect(await start(ANN)).toBe(1);
  });

  it('takes nothing from the minute for an execution that it refuses', async () => {
    const { clock, start, admitted } = admissionAt({ maxRunning: 1, rateLimit: 2 });
    const first = await admitted(ANN);
    expect(await start(ANN)).toBe(1);
    await first.end();
    await (await admitted(ANN)).end();
    clock.seconds = 1;
    expect(await start(ANN)).toBe(59);
  });
});

it('an error without a time to wait has no Retry-After', () => {
  expect(retryAfterOf(new CuvetteError('rate_limited', 'x'))).toBeUndefined();
  expect(retryAfterOf(new CuvetteError('rate_limited', 'x', { cause: new Error('y') }))).toBeUndefined();
});

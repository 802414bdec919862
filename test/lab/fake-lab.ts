/** Makes a lab that computes nothing: a test sees each call, and answers it when it likes. */

import type { LabContext } from '../../src/lab/core/lab.ts';
import { type Lab, PROTOCOL } from '../../src/lab/core/lab.ts';

export interface FakeCall {
  name: string;
  args: Record<string, unknown>;
  context: LabContext;
  answer(answer: Record<string, unknown>): void;
  fail(error: Error): void;
  /** Settles when the call is aborted. */
  aborted: Promise<void>;
}

export interface FakeLab {
  lab: Lab;
  calls: FakeCall[];
  /** The call of this number, counted from 0, once it has come. */
  started(number: number): Promise<FakeCall>;
}

export function createFakeLab(model = 'fake'): FakeLab {
  const calls: FakeCall[] = [];
  const waiting = new Set<() => void>();
  const health = { ok: true, protocol: PROTOCOL, model_id: model, weights_sha256: model.padEnd(64, '0') };
  const lab: Lab = {
    async call(name, args, context) {
      if (name === 'colab_status') return health;
      return new Promise((resolve, reject) => {
        const aborted = new Promise<void>((settle) => {
          context.signal.addEventListener('abort', () => {
            settle();
            reject(context.signal.reason);
          });
        });
        calls.push({ name, args, context, answer: resolve, fail: reject, aborted });
        for (const look of waiting) look();
      });
    },
    close: async () => {},
  };
  return {
    lab,
    calls,
    started: (number) =>
      new Promise((resolve) => {
        const look = () => {
          const call = calls[number];
          if (!call) return;
          waiting.delete(look);
          resolve(call);
        };
        waiting.add(look);
        look();
      }),
  };
}

/** The same, with a Python beside it. */
export function createFakeLabWithPython(): FakeLab {
  const fake = createFakeLab();
  const lab: Lab = {
    ...fake.lab,
    call: async (name, args, context) =>
      name === 'describe_code'
        ? { version: '3.12', executable: 'python', life: 1 }
        : fake.lab.call(name, args, context),
  };
  return { ...fake, lab };
}

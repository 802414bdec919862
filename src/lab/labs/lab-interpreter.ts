/** Makes the Python of a lab, local or remote, an interpreter of a session: `execute(interpreter="colab")`. */

import { nanoid } from 'nanoid';
import { toCuvetteError } from '../../errors.ts';
import {
  type ExitReport,
  type InterpreterEvent,
  type LiveInterpreter,
  notLookedInto,
  type Output,
} from '../../interpreters/interpreter.ts';
import type { LabContext } from '../core/lab.ts';
import { hashOf } from '../core/manifest.ts';
import { describeCode, interruptCode, listVariables, resetCode, runCode } from '../primitives/code.ts';
import type { Called } from './labs.ts';

export type CallLab = (primitive: string, args: Record<string, unknown>, context: LabContext) => Promise<Called>;

/** What is sent with code: the name of the run, and the cell's number. */
interface Sending {
  run: string;
  cell: number;
}

type WithoutNumber<Event> = Event extends unknown ? Omit<Event, 'seq'> : never;

const QUIET: Pick<LabContext, 'progress'> = { progress: () => {} };

export async function openLabInterpreter(call: CallLab): Promise<LiveInterpreter> {
  const stopped = new AbortController();
  const ask = async (primitive: string) => (await call(primitive, {}, { ...QUIET, signal: stopped.signal })).answer;
  let { life, ...about } = describeCode.output.parse(await ask(describeCode.name));
  const state = { ...about, generation: 1, pid: 0, running: null };
  const runs = new Map<string, string>();
  /** Runs that may still be running in an unreachable lab, by the hash of their arguments: a lab resumes a call only if the same arguments come again. */
  const outOfReach = new Map<string, Sending>();
  let listener: (event: InterpreterEvent) => void = () => {};
  let lost: () => void = () => {};
  let tellDeath: (cause: string) => void = () => {};
  let events = 0;

  const emit = (event: WithoutNumber<InterpreterEvent>) => {
    events += 1;
    listener({ ...event, seq: events });
  };

  async function run(id: string, args: Record<string, unknown>): Promise<ExitReport> {
    const context = {
      ...QUIET,
      signal: stopped.signal,
      output: (output: Output) => emit({ kind: 'output', id, output }),
    };
    const { answer } = await call(runCode.name, args, context);
    const { ending, life: itsLife } = runCode.output.parse(answer);
    if (itsLife !== life) tellDeath('it was started afresh, with the model loaded again');
    life = itsLife + ('death' in ending ? 1 : 0);
    return ending;
  }

  return {
    state,
    onEvent: (given) => {
      listener = given;
    },
    onLost: (given) => {
      lost = given;
    },
    onIdleDeath: (given) => {
      tellDeath = given;
    },
    execute({ id, code, cell, timeout, limit }) {
      const asked = { code, timeout, limit };
      const key = hashOf(asked);
      const sending = outOfReach.get(key) ?? { run: nanoid(), cell };
      outOfReach.delete(key);
      runs.set(id, sending.run);
      run(id, { ...asked, ...sending })
        .catch((error: unknown) => {
          if (toCuvetteError(error).code === 'lab_unreachable') outOfReach.set(key, sending);
          return failed(id, error);
        })
        .then((ending) => {
          runs.delete(id);
          emit({ kind: 'done', id, ending: ending });
        });
    },
    interrupt(id) {
      const name = runs.get(id);
      if (name !== undefined)
        call(interruptCode.name, { run: name }, { ...QUIET, signal: stopped.signal }).catch(() => {});
    },
    proceed: () => {},
    acknowledge: () => {},
    answerInstall: () => {},
    variables: async () => listVariables.output.parse(await ask(listVariables.name)).variables,
    ...notLookedInto("The variables of a lab's interpreter are listed, but not looked into. Show them with execute."),
    async reset() {
      await ask(resetCode.name);
      life = describeCode.output.parse(await ask(describeCode.name)).life;
    },
    leave: () => {},
    /** Disconnects; the process belongs to the lab and goes on. */
    async stop() {
      stopped.abort();
      lost();
    },
  };

  /** An error of the lab is shown like an error of the code. */
  function failed(id: string, error: unknown): ExitReport {
    const { code, message } = toCuvetteError(error);
    emit({ kind: 'output', id, output: { type: 'error', ename: code, evalue: message, traceback: [message] } });
    return { status: 'error', errorName: code, wall: 0, cpu: 0, peak: 0, ended: [] };
  }
}

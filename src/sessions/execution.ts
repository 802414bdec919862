/**
 * Follows one execution in this server: takes its interpreter's events, acknowledges them once they are on disk, and passes output to
 * listeners.
 */

import { messageOf } from '../errors.ts';
import type { ExitReport, InterpreterEvent, LiveInterpreter, Output } from '../interpreters/interpreter.ts';
import type { Installed } from '../interpreters/python/installs.ts';
import type { Ending } from './ending.ts';
import type { ExecutionRecord } from './execution-record.ts';
import type { SessionStore } from './session-store.ts';
import { createTranscript, type Transcript } from './transcript.ts';

const FLUSH_AFTER_MS = 300;
/** After a write that failed: the disk may be full for a while. */
const RETRY_AFTER_MS = 1000;
/** Characters of unwritten output at which it is written at once: fewer than a keeper sends without an acknowledgement. */
const FLUSH_AT_CHARACTERS = 32_000;

/** `position`: where the transcript keeps the output, or null where it does not. */
type OutputListener = (output: Output, position: number | null) => void | Promise<void>;

export interface Execution {
  readonly record: ExecutionRecord;
  readonly transcript: Transcript;
  /** Resolves, with the record on disk, when the execution has come to its end. */
  readonly done: Promise<ExecutionRecord>;
  readonly signal: AbortSignal;
  /** A listener may return a promise for backpressure: until it resolves, nothing more is acknowledged, and the keeper lets code wait. */
  onOutput(listener: OutputListener): () => void;
  /** Notes that it now runs. */
  start(): void;
  take(event: Extract<InterpreterEvent, { kind: 'output' }>, from: LiveInterpreter): void;
  note(note: string): void;
  /** Adds a text of the server's own to the output: what the execution waits for. */
  say(text: string): void;
  noteInstall(installed: Installed): void;
  finish(ending: Ending, report?: ExitReport, acknowledge?: () => void, seq?: number): Promise<void>;
}

export function createExecution(
  record: ExecutionRecord,
  store: SessionStore,
  options: { path: string; limit: number },
): Execution {
  const isResumed = record.outputs.length > 0 || record.textLength > 0;
  const transcript = createTranscript({
    ...options,
    ...(isResumed && {
      resume: {
        outputs: record.outputs,
        text: record.text,
        length: record.textLength,
        file: record.outputFile,
        bytes: record.outputBytes,
      },
    }),
  });
  const watchers = new Set<OutputListener>();
  const awaited = new Set<Promise<void>>();
  // Made when it is first asked for: most executions need none.
  let ended: AbortController | undefined;
  let resolveDone: (record: ExecutionRecord) => void = () => {};
  const done = new Promise<ExecutionRecord>((resolve) => {
    resolveDone = resolve;
  });
  let seen = isResumed ? store.acknowledged(record.session, record.number) : 0;
  let written = seen;
  let timer: NodeJS.Timeout | undefined;
  let unsaved = 0;
  let isSaving = false;

  let persisting = Promise.resolve();

  /** Brings the record up to date on disk; one at a time, so that the text and the record agree. */
  function persist(): Promise<void> {
    persisting = persisting.catch(() => {}).then(writeRecord); // The next write makes up for one that failed.
    return persisting;
  }

  async function writeRecord(): Promise<void> {
    const seq = seen;
    unsaved = 0;
    const changed = transcript.takeChanged();
    const snapshot = {
      outputs: [...transcript.outputs],
      text: transcript.head(options.limit),
      textLength: transcript.length,
      outputFile: transcript.file,
    };
    try {
      Object.assign(record, snapshot, { outputBytes: await transcript.flush() });
      store.putExecution(record, seq, changed);
    } catch (error) {
      transcript.markChanged(changed);
      throw error;
    }
    written = seq;
  }

  function show(output: Output): void {
    const position = transcript.add(output);
    for (const watcher of watchers) {
      const taken = tell(watcher, output, position);
      if (!taken) continue;
      awaited.add(taken);
      void taken.finally(() => awaited.delete(taken));
    }
  }

  function persistSoon(from: LiveInterpreter): void {
    if (unsaved > FLUSH_AT_CHARACTERS && !isSaving) void save(from);
    else timer ??= setTimeout(save, FLUSH_AFTER_MS, from);
  }

  async function save(from: LiveInterpreter): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    isSaving = true;
    try {
      await persist();
      const seq = written;
      await Promise.all(awaited);
      from.acknowledge(seq);
    } catch {
      // Its interpreter may wait for the acknowledgement, and send nothing before that.
      if (record.state !== 'done') timer ??= setTimeout(save, RETRY_AFTER_MS, from);
    } finally {
      isSaving = false;
    }
  }

  if (record.state === 'done') resolveDone(record);

  return {
    record,
    transcript,
    done,
    get signal() {
      ended ??= new AbortController();
      return ended.signal;
    },
    onOutput(listener) {
      watchers.add(listener);
      return () => watchers.delete(listener);
    },
    start() {
      record.startedAt = Date.now();
      record.state = 'running';
    },
    take(event, from) {
      if (event.seq <= seen) return;
      seen = event.seq;
      if (event.output.type === 'stream') unsaved += event.output.text.length;
      show(event.output);
      persistSoon(from);
    },
    note: (note) => void record.notes.push(note),
    say: (text) => show({ type: 'stream', name: 'stderr', text }),
    noteInstall: (installed) => void record.installed.push(installed),
    async finish(ending, report, acknowledge, seq) {
      if (record.state === 'done') return acknowledge?.();
      clearTimeout(timer);
      timer = undefined;
      if (seq !== undefined) seen = Math.max(seen, seq);
      Object.assign(record, ending, {
        state: 'done',
        wall: report?.wall ?? (Date.now() - record.startedAt) / 1000,
        cpu: report?.cpu ?? null,
        peak: report?.peak ?? null,
        ended: report?.ended ?? [],
      });
      try {
        await persist();
        acknowledge?.();
      } catch (error) {
        record.notes.push(`this execution could not be saved: ${messageOf(error)}`);
      }
      ended?.abort();
      resolveDone(record);
    },
  };
}

/** A listener that fails does not disturb the execution or the other listeners. */
function tell(watcher: OutputListener, output: Output, position: number | null): Promise<void> | undefined {
  try {
    return watcher(output, position)?.catch(() => {});
  } catch {
    return undefined;
  }
}

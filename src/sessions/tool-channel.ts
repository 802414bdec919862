/**
 * Lets a running program call tools and wait for their results: through a folder in its workspace, with a FIFO on which it says that it
 * asks, a file for each question, and a FIFO and a file for each answer. Works for any language that can write a file. The program may do
 * anything with the folder, so it is held open, and nothing in it is followed or waited for.
 */

import { execFileSync } from 'node:child_process';
import { closeSync, fchmodSync, fchownSync, mkdirSync, opendirSync, rmdirSync, writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { nanoid } from 'nanoid';
import { writeIntoFolderSync } from '../files/copy-in.ts';
import { type FolderHandleSync, openFolderSync, tryUnlinkSync } from '../files/folder-handle.ts';
import { openFifoSync, readRegularFileSync } from '../files/open-untrusted.ts';
import { parseGuarded } from '../json-guard.ts';
import { readLines } from '../json-lines.ts';

export interface ToolCall {
  id: string;
  name: string;
  input: unknown;
}

export interface ToolResult {
  call_id: string;
  result?: unknown;
  is_error?: boolean | null | undefined;
  error_message?: string | null | undefined;
}

export interface ToolChannel {
  /** The folder's name in the workspace. */
  readonly name: string;
  onCall(listener: (call: ToolCall) => void): void;
  answer(result: ToolResult): void;
  /** Puts a file into the folder. */
  put(file: string, text: string): void;
  /** Removes the folder, with the files in it. */
  close(): void;
}

const QUESTION = /^([A-Za-z0-9_-]{1,64}) ([A-Za-z_][A-Za-z0-9_]*)$/;
/** Characters, of one question and of all questions of a program. */
const LARGEST_QUESTION = 5_000_000;
const MOST_ASKED = 64_000_000;
const BYTES_PER_CHARACTER = 3;
/** Who asks more often than this, or says more, is no longer listened to. */
const MOST_QUESTIONS = 2000;
const MOST_BYTES = 4_000_000;
const MOST_BELLS = 256;
const MOST_REMOVED = 100_000;

/** What is made belongs to `owner`, if code runs as another user than this process. */
export function openToolChannel(workspace: string, owner?: number): ToolChannel {
  const name = `.cuvette-tools-${nanoid(10)}`;
  const above = openFolderSync(workspace);
  let folder: FolderHandleSync | undefined;
  try {
    mkdirSync(above.entry(name), { mode: 0o700 });
    folder = openFolderSync(above.entry(name));
    const calls = makeFifo(folder, 'calls', owner);
    if (owner !== undefined) fchownSync(folder.fd, owner, owner);
    return listen(name, above, folder, calls, owner);
  } catch (error) {
    remove(name, above, folder);
    throw error;
  }
}

function makeFifo(folder: FolderHandleSync, name: string, owner: number | undefined): number {
  execFileSync('mkfifo', [name], { cwd: folder.path });
  const fd = openFifoSync(folder.entry(name));
  fchmodSync(fd, 0o600);
  if (owner !== undefined) fchownSync(fd, owner, owner);
  return fd;
}

function listen(
  name: string,
  above: FolderHandleSync,
  folder: FolderHandleSync,
  calls: number,
  owner: number | undefined,
): ToolChannel {
  // Open for both, so that it does not end whenever a writer is done.
  const socket = new Socket({ fd: calls });
  let listener: ((call: ToolCall) => void) | undefined;
  let count = 0;
  let asked = 0;
  let isClosed = false;
  const heard: { id: string; mark: string; tool: string }[] = [];
  /** By the id of a call: the program's mark for it. */
  const waiting = new Map<string, string>();
  const bells = new Set<number>();

  socket.on('error', () => {});
  socket.on('data', () => {
    if (socket.bytesRead > MOST_BYTES) socket.destroy();
  });
  readLines(socket, (line) => {
    const [, mark, tool] = QUESTION.exec(line) ?? [];
    if (!mark || !tool || count === MOST_QUESTIONS) return;
    count += 1;
    if (count === MOST_QUESTIONS) socket.destroy();
    const id = `call_${String(count).padStart(3, '0')}`;
    waiting.set(id, mark);
    if (heard.push({ id, mark, tool }) === 1) setImmediate(takeNext);
  });

  /** One at a time, with what else the server has to do in between: a program may ask a great deal at once. */
  function takeNext(): void {
    const question = heard.shift();
    if (!question || isClosed) return;
    const { id, mark, tool } = question;
    if (heard.length > 0) setImmediate(takeNext);
    if (asked >= MOST_ASKED) {
      const error_message = `More than ${MOST_ASKED} characters were asked in one program`;
      return answer({ call_id: id, is_error: true, error_message });
    }
    const text = readQuestion(folder.entry(`${mark}.in`));
    asked += text?.length ?? 0;
    listener?.({ id, name: tool, input: parse(text) });
  }

  function answer({ call_id, result, is_error, error_message }: ToolResult): void {
    const mark = waiting.get(call_id);
    if (mark === undefined) return;
    waiting.delete(call_id);
    const text = is_error ? (error_message ?? String(result ?? 'the tool failed')) : JSON.stringify(result ?? null);
    try {
      writeIntoFolderSync(`${text}\n`, folder, `${mark}.result`, owner);
      ring(openFifoSync(folder.entry(`${mark}.out`)), is_error ? 'error\n' : 'ok\n');
    } catch {} // The program is gone, or has removed the folder.
  }

  /** Closed only at the end, or long after: what was written to a FIFO that nobody has opened yet would be lost. */
  function ring(bell: number, word: string): void {
    bells.add(bell);
    const [oldest] = bells;
    if (bells.size > MOST_BELLS && oldest !== undefined) {
      bells.delete(oldest);
      closeSync(oldest);
    }
    writeSync(bell, word);
  }

  return {
    name,
    onCall(next) {
      listener = next;
    },
    answer,
    put: (file, text) => writeIntoFolderSync(text, folder, file, owner),
    close() {
      if (isClosed) return;
      isClosed = true;
      socket.destroy();
      waiting.clear();
      for (const bell of bells) closeSync(bell);
      remove(name, above, folder);
    },
  };
}

/** Entry by entry, none of which is entered: folders that the program has made in there stay its own. */
function remove(name: string, above: FolderHandleSync, folder: FolderHandleSync | undefined): void {
  try {
    if (folder) empty(folder);
    rmdirSync(above.entry(name));
  } catch {} // The program has moved it, or closed it to us.
  folder?.close();
  above.close();
}

function empty(folder: FolderHandleSync): void {
  const entries = opendirSync(folder.path);
  try {
    for (let left = MOST_REMOVED; left > 0; left -= 1) {
      const entry = entries.readSync();
      if (!entry) return;
      if (!entry.isDirectory()) tryUnlinkSync(folder.entry(entry.name));
    }
  } finally {
    entries.closeSync();
  }
}

/** Nothing, if there is no such file. */
function readQuestion(file: string): string | undefined {
  try {
    const bytes = readRegularFileSync(file, LARGEST_QUESTION * BYTES_PER_CHARACTER);
    return bytes.toString('utf8').slice(0, LARGEST_QUESTION);
  } catch {
    return undefined;
  }
}

/** What the program wrote; what is not JSON, or would take long to read, goes on as text. */
function parse(text: string | undefined): unknown {
  if (text === undefined) return '';
  try {
    return parseGuarded(text || '{}');
  } catch {
    return text;
  }
}

/** What a program runs first: a function for each tool. `names` maps the function's name to the tool's. */
export function bashPrelude(folder: string, names: string[]): string {
  const functions = names.map((name) => `${name}() { __cuvette_tool ${name} "$@"; }`);
  return `__cuvette_tool() {
  local mark="$BASHPID-$RANDOM$RANDOM" word
  local way='${folder.replaceAll("'", "'\\''")}'
  printf '%s' "\${2-}" > "$way/$mark.in" && mkfifo "$way/$mark.out" && printf '%s %s\\n' "$mark" "$1" > "$way/calls" || return 1
  IFS= read -r word < "$way/$mark.out"
  if [ "$word" = ok ]; then cat "$way/$mark.result"; return; fi
  printf '%s: %s\\n' "$1" "$(cat "$way/$mark.result")" >&2
  return 1
}
${functions.join('\n')}
`;
}

export function pythonPrelude(folder: string, names: string[]): string {
  return `def _cuvette_tools(folder, names, space):
    import asyncio, json, os, uuid

    def define(name):
        async def tool(**arguments):
            path = os.path.join(folder, uuid.uuid4().hex)
            with open(path + ".in", "w") as question:
                json.dump(arguments, question)
            os.mkfifo(path + ".out")
            bell = os.open(path + ".out", os.O_RDONLY | os.O_NONBLOCK)
            loop = asyncio.get_running_loop()
            rung = asyncio.Event()
            loop.add_reader(bell, rung.set)
            try:
                with open(os.path.join(folder, "calls"), "w") as calls:
                    calls.write("%s %s\\n" % (os.path.basename(path), name))
                await rung.wait()
                word = os.read(bell, 64)
            finally:
                loop.remove_reader(bell)
                os.close(bell)
            with open(path + ".result") as result:
                text = result.read()
            if word != b"ok\\n":
                raise RuntimeError(text.rstrip("\\n"))
            return json.loads(text)

        tool.__name__ = tool.__qualname__ = name
        return tool

    for name in names:
        space[name] = define(name)


_cuvette_tools(${JSON.stringify(folder)}, ${JSON.stringify(names)}, globals())
del _cuvette_tools
`;
}

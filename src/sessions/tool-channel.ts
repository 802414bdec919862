/**
 * The way by which a running program asks for tools and waits for what they give: a folder in its workspace, with a FIFO on which
 * it says that it asks, a file for each question, and a FIFO and a file for each answer. Works for any language that can write a file.
 */

import { execFileSync } from 'node:child_process';
import {
  closeSync,
  constants,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { nanoid } from 'nanoid';
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
  close(): void;
}

const QUESTION = /^([A-Za-z0-9_-]{1,64}) ([A-Za-z_][A-Za-z0-9_]*)$/;
const LARGEST_QUESTION = 5_000_000;

export function openToolChannel(workspace: string): ToolChannel {
  const name = `.cuvette-tools-${nanoid(10)}`;
  const folder = join(workspace, name);
  mkdirSync(folder, { mode: 0o700 });
  const calls = join(folder, 'calls');
  execFileSync('mkfifo', ['-m', '600', calls]);
  // Open for both, so that it neither blocks now nor ends whenever a writer is done.
  const socket = new Socket({ fd: openSync(calls, constants.O_RDWR | constants.O_NONBLOCK) });
  let listener: ((call: ToolCall) => void) | undefined;
  let count = 0;
  const waiting = new Map<string, string>();
  const open = new Set<number>();

  readLines(socket, (line) => {
    const [, mark = '', tool = ''] = QUESTION.exec(line) ?? [];
    if (!mark) return;
    count += 1;
    const id = `call_${String(count).padStart(3, '0')}`;
    waiting.set(id, mark);
    listener?.({ id, name: tool, input: readQuestion(join(folder, `${mark}.in`)) });
  });
  socket.on('error', () => {});

  return {
    name,
    onCall(next) {
      listener = next;
    },
    answer({ call_id, result, is_error, error_message }) {
      const mark = waiting.get(call_id);
      if (mark === undefined) return;
      waiting.delete(call_id);
      const text = is_error ? (error_message ?? String(result ?? 'the tool failed')) : JSON.stringify(result ?? null);
      const file = join(folder, `${mark}.result`);
      try {
        writeFileSync(`${file}.part`, `${text}\n`);
        renameSync(`${file}.part`, file);
        const bell = openSync(
          join(folder, `${mark}.out`),
          constants.O_RDWR | constants.O_NONBLOCK | constants.O_NOFOLLOW,
        );
        open.add(bell); // Closed only at the end: what was written to a FIFO that nobody has opened yet would be lost.
        writeSync(bell, is_error ? 'error\n' : 'ok\n');
      } catch {} // The program is gone, or has removed the folder.
    },
    close() {
      socket.destroy();
      for (const bell of open) closeSync(bell);
      open.clear();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** What the program wrote; what is not JSON goes on as text. */
function readQuestion(file: string): unknown {
  let text = '';
  try {
    text = readFileSync(file, 'utf8').slice(0, LARGEST_QUESTION);
    return JSON.parse(text || '{}');
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

/** Where a person writes code for the session: the editor, the choice of interpreter, and the code of earlier executions at the arrow keys. */

import type { CompletionContext, CompletionResult } from '@codemirror/autocomplete';
import type { Ref } from 'preact';
import { useEffect, useImperativeHandle, useRef, useState } from 'preact/hooks';
import * as z from 'zod/mini';
import type { SessionDetail } from '../api/schemas.ts';
import type { Editor } from '../editor/editor.ts';
import { useApp } from '../shell/context.ts';
import { Icon } from '../shell/icons.tsx';
import type { SessionStore } from '../state/session-store.ts';

export interface ComposerHandle {
  focus(): void;
  /** Puts code in place of what is there. */
  take(code: string): void;
}

interface ComposerProps {
  handle: Ref<ComposerHandle>;
  store: SessionStore;
  detail: SessionDetail | undefined;
  interpreter: string;
  onInterpreter(name: string): void;
  onRun(code: string, interpreter: string): Promise<void>;
}

const HINT = 'Run code in this session: Shift+Enter';
const completionSchema = z.object({ matches: z.array(z.string()), start: z.number(), end: z.number() });

export function Composer({ handle, store, detail, interpreter, onInterpreter, onRun }: ComposerProps) {
  const { api, fail } = useApp();
  const holder = useRef<HTMLDivElement>(null);
  const editor = useRef<Editor>(undefined);
  const [isReady, setReady] = useState(false);
  /** What the editor's keys call, which lives longer than one drawing. */
  const latest = useRef({ run: (_: string) => {}, interpreter });
  const interpreters = detail?.interpreters ?? [];
  const language = interpreters.find(({ name }) => name === interpreter)?.language ?? interpreter;

  latest.current = {
    interpreter,
    run(code) {
      if (code.trim() === '') return;
      editor.current?.replace('');
      onRun(code, interpreter).catch((error: unknown) => {
        if (editor.current?.code() === '') editor.current.replace(code);
        fail(error);
      });
    },
  };

  useEffect(() => {
    let isGone = false;
    let step = 0;
    let draft = '';
    import('../editor/editor.ts')
      .then(({ createEditor }) => {
        if (isGone || !holder.current) return;
        editor.current = createEditor({
          parent: holder.current,
          label: 'Code to run in this session',
          hint: HINT,
          code: '',
          onRun(code) {
            step = 0;
            latest.current.run(code);
            return true;
          },
          onHistory(direction, code) {
            const past = historyOf(store);
            if (step === 0) draft = code;
            const next = step - direction;
            if (next < 0 || next > past.length) return undefined;
            step = next;
            return step === 0 ? draft : past[past.length - step];
          },
          onEscape: () => document.querySelector<HTMLElement>('.list-scroller')?.focus(),
          complete: (context) => complete(context),
        });
        setReady(true);
      })
      .catch(fail);
    const complete = async (context: CompletionContext): Promise<CompletionResult | null> => {
      const path = `sessions/${encodeURIComponent(store.id)}/interpreters/${encodeURIComponent(latest.current.interpreter)}/complete`;
      const body = { code: context.state.doc.toString(), cursor: context.pos };
      const answer = await api.post(api.url(path), body).catch(() => undefined);
      if (!answer) return null;
      const { matches, start, end } = completionSchema.parse(await answer.json());
      return { from: start, to: end, options: matches.map((label) => ({ label })) };
    };
    return () => {
      isGone = true;
      editor.current?.destroy();
      editor.current = undefined;
    };
  }, [store, api, fail]);

  useEffect(() => {
    if (isReady) editor.current?.language(language).catch(() => {});
  }, [isReady, language]);

  useImperativeHandle(
    handle,
    () => ({
      focus: () => editor.current?.focus(),
      take(code) {
        editor.current?.replace(code);
        editor.current?.focus();
      },
    }),
    [],
  );

  return (
    <section class="composer" aria-label="Composer">
      <div ref={holder} class={`editor ${isReady ? '' : 'loading'}`} />
      <div class="composer-bar">
        <label class="picker">
          <span class="unseen">Interpreter</span>
          <select
            value={interpreter}
            onChange={({ currentTarget }) => onInterpreter(currentTarget.value)}
            disabled={interpreters.length === 0}
          >
            {interpreters.length === 0 && (
              <option value={interpreter}>{interpreter === 'builtin' ? 'Python' : interpreter}</option>
            )}
            {interpreters.map(({ name, title }) => (
              <option key={name} value={name}>
                {title || name}
              </option>
            ))}
          </select>
        </label>
        <span class="hint" aria-hidden="true">
          <kbd>⇧</kbd>
          <kbd>↵</kbd> run <kbd>↑</kbd> earlier code
        </span>
        <button type="button" class="primary" onClick={() => latest.current.run(editor.current?.code() ?? '')}>
          <Icon name="play" /> Run
        </button>
      </div>
    </section>
  );
}

/** Each code once, the newest last. */
function historyOf(store: SessionStore): string[] {
  const codes = store.cells.peek().map((cell) => cell.head.peek().code);
  return [...new Set(codes.reverse())].reverse();
}

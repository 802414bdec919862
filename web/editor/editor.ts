/**
 * Makes the editor of the composer: CodeMirror in a shadow root, so that its style sheets are adopted and the page's strict content security
 * policy needs no exception. What is run and what history there is are the composer's.
 */

import { autocompletion, type CompletionSource, closeBrackets } from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands';
import { bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from '@codemirror/language';
import { Compartment, EditorState, Prec } from '@codemirror/state';
import { drawSelection, EditorView, keymap, placeholder } from '@codemirror/view';
import { classHighlighter } from '@lezer/highlight';
import syntaxStyle from '../styles/syntax.css?inline';
import { loadLanguage } from './languages.ts';

export interface EditorOptions {
  parent: HTMLElement;
  label: string;
  hint: string;
  code: string;
  /** Says whether the key was used. */
  onRun(code: string): boolean;
  onHistory(step: -1 | 1, code: string): string | undefined;
  onEscape(): void;
  complete: CompletionSource;
}

export interface Editor {
  code(): string;
  replace(code: string): void;
  language(name: string): Promise<void>;
  focus(): void;
  destroy(): void;
}

export function createEditor(options: EditorOptions): Editor {
  const root = options.parent.shadowRoot ?? options.parent.attachShadow({ mode: 'open' });
  const syntax = new CSSStyleSheet();
  syntax.replaceSync(syntaxStyle);
  root.adoptedStyleSheets = [...root.adoptedStyleSheets, syntax];
  const language = new Compartment();

  const run = ({ state }: EditorView) => options.onRun(state.doc.toString());
  const recall = (step: -1 | 1) => (view: EditorView) => {
    const { main } = view.state.selection;
    const line = view.state.doc.lineAt(main.head).number;
    if (!main.empty || line !== (step === -1 ? 1 : view.state.doc.lines)) return false;
    const code = options.onHistory(step, view.state.doc.toString());
    if (code === undefined) return false;
    replaceAll(view, code, step === -1 ? 0 : code.length);
    return true;
  };

  const view = new EditorView({
    parent: root,
    root,
    state: EditorState.create({
      doc: options.code,
      extensions: [
        Prec.highest(
          keymap.of([
            { key: 'Shift-Enter', run },
            { key: 'Mod-Enter', run },
          ]),
        ),
        autocompletion({ override: [options.complete], activateOnTyping: false }),
        keymap.of([
          { key: 'ArrowUp', run: recall(-1) },
          { key: 'ArrowDown', run: recall(1) },
          {
            key: 'Escape',
            run: () => {
              options.onEscape();
              return true;
            },
          },
          indentWithTab,
          ...historyKeymap,
          ...defaultKeymap,
        ]),
        history(),
        drawSelection(),
        indentUnit.of('    '),
        indentOnInput(),
        bracketMatching(),
        closeBrackets(),
        syntaxHighlighting(classHighlighter),
        placeholder(options.hint),
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ 'aria-label': options.label, spellcheck: 'false', autocapitalize: 'off' }),
        THEME,
        language.of([]),
      ],
    }),
  });

  return {
    code: () => view.state.doc.toString(),
    replace: (code) => replaceAll(view, code, code.length),
    async language(name) {
      const found = await loadLanguage(name);
      view.dispatch({ effects: language.reconfigure(found ?? []) });
    },
    focus: () => view.focus(),
    destroy: () => view.destroy(),
  };
}

function replaceAll(view: EditorView, code: string, cursor: number): void {
  view.dispatch({
    changes: { from: 0, to: view.state.doc.length, insert: code },
    selection: { anchor: cursor },
    scrollIntoView: true,
  });
}

const THEME = EditorView.theme({
  '&': { color: 'var(--ink)', backgroundColor: 'transparent', fontSize: 'var(--code-size)' },
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.5', maxHeight: '40vh' },
  '.cm-content': { caretColor: 'var(--accent)', padding: '8px 0', minHeight: '2.6em' },
  '.cm-line': { padding: '0 12px' },
  '.cm-cursor': { borderLeftColor: 'var(--accent)', borderLeftWidth: '2px' },
  '.cm-placeholder': { color: 'var(--soft)' },
  '.cm-selectionBackground, &.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground': {
    backgroundColor: 'var(--selection)',
  },
  '.cm-matchingBracket, &.cm-focused .cm-matchingBracket': { backgroundColor: 'var(--selection)', outline: 'none' },
  '.cm-tooltip': {
    backgroundColor: 'var(--paper)',
    border: '1px solid var(--line)',
    borderRadius: '6px',
    color: 'var(--ink)',
    boxShadow: 'var(--shadow)',
  },
  '.cm-tooltip-autocomplete > ul > li[aria-selected]': { backgroundColor: 'var(--accent)', color: 'var(--paper)' },
});

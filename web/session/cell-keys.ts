/** Moves between cells and acts on them by keys, while nothing is being typed. */

import { useEffect } from 'preact/hooks';
import type { SessionStore } from '../state/session-store.ts';
import type { ComposerHandle } from './composer.tsx';
import type { ListHandle } from './virtual-list.tsx';

interface CellKeysOptions {
  list: { current: ListHandle | null };
  composer: { current: ComposerHandle | null };
  interrupt(number: number): void;
}

export function useCellKeys(store: SessionStore, { list, composer, interrupt }: CellKeysOptions): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (isTyping(event)) return;
      const focused = focusedNumber();
      const numbers = store.cells.peek().map(({ number }) => number);
      const go = (step: -1 | 1) => {
        const at = focused === undefined ? (step === 1 ? -1 : numbers.length) : numbers.indexOf(focused);
        const next = numbers[Math.max(0, Math.min(numbers.length - 1, at + step))];
        if (next === undefined) return;
        // At once where it is drawn, so that keys pressed fast are not lost.
        if (focusCell(next)) return;
        list.current?.show(next);
        requestAnimationFrame(() => focusCell(next));
      };
      const head =
        focused === undefined
          ? undefined
          : store.cells
              .peek()
              .find(({ number }) => number === focused)
              ?.head.peek();
      const keys: Record<string, () => void> = {
        j: () => go(1),
        k: () => go(-1),
        G: () => list.current?.showEnd(),
        c: () => composer.current?.focus(),
        i: () => {
          const running =
            store.session.peek()?.running ??
            store.cells.peek().findLast((cell) => cell.head.peek().state === 'running')?.number;
          if (running) interrupt(running);
        },
        ...(head && { e: () => composer.current?.take(head.code) }),
      };
      const action = keys[event.key];
      if (!action) return;
      event.preventDefault();
      action();
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, [store, list, composer, interrupt]);
}

/** Keys with modifiers belong to the browser, and those in a field to the field. */
export function isTyping(event: KeyboardEvent): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return true;
  const [target] = event.composedPath();
  if (!(target instanceof HTMLElement)) return false;
  return (
    target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.closest('dialog') !== null
  );
}

function focusCell(number: number): boolean {
  const cell = document.getElementById(`execution-${number}`);
  cell?.focus({ preventScroll: true });
  cell?.scrollIntoView({ block: 'nearest' });
  return cell !== null;
}

function focusedNumber(): number | undefined {
  const cell = document.activeElement?.closest('article.cell');
  return cell instanceof HTMLElement ? Number(cell.dataset.number) : undefined;
}

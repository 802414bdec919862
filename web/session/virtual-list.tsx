/**
 * Draws those of many items, each as high as it happens to be, that are near what is in view. The item at the top of the view stays where it is
 * while items above it come, go, or change their height; while the end is in view, the end stays in view.
 */

import type { ComponentChildren, Ref } from 'preact';
import { useEffect, useImperativeHandle, useLayoutEffect, useRef, useState } from 'preact/hooks';

export interface ListHandle {
  /** Brings an item to the top of the view. */
  show(key: number): void;
  showEnd(): void;
}

interface VirtualListProps<Item> {
  items: readonly Item[];
  keyOf(item: Item): number;
  render(item: Item): ComponentChildren;
  label: string;
  /** The beginning of the list is near. */
  onNearTop(): void;
  /** Whether the end is in view. */
  onFollow(follows: boolean): void;
  handle: Ref<ListHandle>;
  before?: ComponentChildren;
}

/** Of an item that was not drawn yet, in pixels. */
const GUESS = 140;
const OVERSCAN = 900;
const NEAR_END = 60;

export function VirtualList<Item>(props: VirtualListProps<Item>) {
  const { items, keyOf, render, label, onNearTop, onFollow, before } = props;
  const scroller = useRef<HTMLElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const heights = useRef(new Map<number, number>()).current;
  const view = useRef({ follows: true, anchor: undefined as number | undefined, delta: 0, last: 0 }).current;
  const [range, setRange] = useState({ from: 0, to: 0 });

  const keys = items.map(keyOf);
  const heightOf = (key: number) => heights.get(key) ?? GUESS;
  const { from, to } = clamp(range, items.length, view.follows);

  /** Where items begin, in the list. */
  function offsetOf(index: number): number {
    let sum = 0;
    for (let i = 0; i < index; i++) sum += heightOf(keys[i] ?? 0);
    return sum;
  }

  function place(): void {
    const element = scroller.current;
    if (!element || !list.current) return;
    const top = element.scrollTop - list.current.offsetTop;
    let sum = 0;
    let index = 0;
    while (index < keys.length - 1 && sum + heightOf(keys[index] ?? 0) <= top) {
      sum += heightOf(keys[index] ?? 0);
      index += 1;
    }
    view.anchor = keys[index];
    view.delta = top - sum;
    let first = index;
    for (let above = 0; first > 0 && above < OVERSCAN; first--) above += heightOf(keys[first - 1] ?? 0);
    let last = index;
    for (let below = sum - top; last < keys.length && below < element.clientHeight + OVERSCAN; last++)
      below += heightOf(keys[last] ?? 0);
    if (first !== range.from || last !== range.to) setRange({ from: first, to: last });
    if (first === 0 && element.scrollTop < OVERSCAN) onNearTop();
  }

  /** After anything changed: what was in view is in view again. */
  function settle(): void {
    const element = scroller.current;
    const holder = list.current;
    if (!element || !holder) return;
    for (const child of holder.children) {
      if (child instanceof HTMLElement && child.dataset.key !== undefined)
        heights.set(Number(child.dataset.key), child.offsetHeight);
    }
    const [head, tail] = [holder.firstElementChild, holder.lastElementChild];
    if (head instanceof HTMLElement) head.style.height = `${offsetOf(from)}px`;
    if (tail instanceof HTMLElement) tail.style.height = `${offsetOf(items.length) - offsetOf(to)}px`;
    if (view.follows) element.scrollTop = element.scrollHeight;
    else if (view.anchor !== undefined) {
      const index = keys.indexOf(view.anchor);
      const wanted = index < 0 ? element.scrollTop : offsetOf(index) + view.delta + holder.offsetTop;
      if (Math.abs(wanted - element.scrollTop) > 1) element.scrollTop = wanted;
    }
    view.last = element.scrollTop;
    place();
  }

  const latest = useRef({ settle, place });
  latest.current = { settle, place };

  useLayoutEffect(settle);

  useEffect(() => {
    const observer = new ResizeObserver(() => latest.current.settle());
    if (scroller.current) observer.observe(scroller.current);
    if (list.current) observer.observe(list.current);
    return () => observer.disconnect();
  }, []);

  useImperativeHandle(
    props.handle,
    () => ({
      show(key) {
        view.follows = false;
        view.anchor = key;
        view.delta = -8;
        onFollow(false);
        latest.current.settle();
      },
      showEnd() {
        view.follows = true;
        onFollow(true);
        latest.current.settle();
      },
    }),
    [onFollow, view],
  );

  function onScroll(): void {
    const element = scroller.current;
    if (!element) return;
    const isAtEnd = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR_END;
    const follows = isAtEnd || (view.follows && element.scrollTop >= view.last - 1);
    if (follows !== view.follows) onFollow(follows);
    view.follows = follows;
    view.last = element.scrollTop;
    place();
  }

  return (
    <section ref={scroller} class="list-scroller" onScroll={onScroll} aria-label={label} tabIndex={0}>
      {before}
      <div ref={list} class="list">
        <div aria-hidden="true" />
        {items.slice(from, to).map((item) => (
          <div key={keyOf(item)} data-key={keyOf(item)} class="list-item">
            {render(item)}
          </div>
        ))}
        <div aria-hidden="true" />
      </div>
    </section>
  );
}

/** New items at the end are drawn at once where the end is in view. */
function clamp({ from, to }: { from: number; to: number }, length: number, follows: boolean) {
  const end = follows ? length : Math.min(to, length);
  return {
    from: Math.max(0, Math.min(from, end - 1, follows && from === 0 && to === 0 ? length - 12 : from)),
    to: end,
  };
}

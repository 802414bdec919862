/** Holds output that may be long: as high as it needs to be up to a limit, then it scrolls; while its end is in view, the end stays in view. */

import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

interface ScrollBoxProps {
  label: string;
  /** Another value whenever the content changed. */
  version: number;
  isTall: boolean;
  children: ComponentChildren;
}

const NEAR = 24;

export function ScrollBox({ label, version, isTall, children }: ScrollBoxProps) {
  const box = useRef<HTMLElement>(null);
  const follows = useRef(true);
  const last = useRef(0);
  useLayoutEffect(() => {
    const element = box.current;
    if (element && follows.current) element.scrollTop = element.scrollHeight;
  }, [version]);
  const onScroll = () => {
    const element = box.current;
    if (!element) return;
    const isAtEnd = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR;
    if (isAtEnd) follows.current = true;
    else if (element.scrollTop < last.current) follows.current = false;
    last.current = element.scrollTop;
  };
  if (!isTall) return <div class="scroll-box">{children}</div>;
  return (
    <section ref={box} class="scroll-box tall" onScroll={onScroll} tabIndex={0} aria-label={label}>
      {children}
    </section>
  );
}

/** Holds what may be too wide or too high and scrolls then, so that it can be reached and scrolled by the keyboard. */

import type { ComponentChildren } from 'preact';

interface ScrollingProps {
  class: string;
  label: string;
  children: ComponentChildren;
}

export function Scrolling({ class: name, label, children }: ScrollingProps) {
  return (
    <section class={name} tabIndex={0} aria-label={label}>
      {children}
    </section>
  );
}

/** Draws LaTeX formulas as MathML, which the browser lays out with its own fonts. */

import katex from 'katex';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { importMarkup } from './import-markup.ts';

/** The value of text/latex: formulas between dollar signs or \[ \], or one without them. */
export function Latex({ text }: { text: string }) {
  const formula = text
    .trim()
    .replace(/^(\$\$?|\\\[|\\\()/, '')
    .replace(/(\$\$?|\\\]|\\\))$/, '');
  return (
    <div class="latex">
      <Formula source={formula} isBlock />
    </div>
  );
}

export function Formula({ source, isBlock }: { source: string; isBlock: boolean }) {
  const holder = useRef<HTMLSpanElement>(null);
  useLayoutEffect(() => {
    holder.current?.replaceChildren(render(source, isBlock));
  }, [source, isBlock]);
  return <span ref={holder} class={isBlock ? 'formula block' : 'formula'} />;
}

function render(source: string, isBlock: boolean): Node {
  try {
    const made = katex.renderToString(source, {
      output: 'mathml',
      displayMode: isBlock,
      throwOnError: true,
      trust: false,
      maxExpand: 500,
      maxSize: 20,
      strict: 'ignore',
    });
    return importMarkup(made);
  } catch {
    return document.createTextNode(source);
  }
}

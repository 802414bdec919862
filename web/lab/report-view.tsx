/** Shows the sections of a record in a shadow root with the reports' own style sheet, in the page's colours. */

import { useLayoutEffect, useRef } from 'preact/hooks';
import { FIGURE_RULES, PAGE_STYLE } from '../../src/lab/report/styles.ts';
import { importMarkup } from '../outputs/import-markup.ts';
import { drawRecord, type LabRecord } from './records.ts';

const HOST = `:host{display:block;color:var(--ink);font:15px/1.55 Charter,"Bitstream Charter","Source Serif 4",Cambria,Georgia,"Liberation Serif",serif}
:host>div{max-width:820px}h1{font-size:1.4rem}h2{font-size:1.1rem}`;

export function ReportView({ record }: { record: LabRecord }) {
  const holder = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const element = holder.current;
    if (!element) return;
    const root = element.shadowRoot ?? element.attachShadow({ mode: 'open' });
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(`${FIGURE_RULES}${PAGE_STYLE}${HOST}`);
    root.adoptedStyleSheets = [sheet];
    const body = document.createElement('div');
    body.append(importMarkup(drawRecord(record)));
    makeScroll(body);
    root.replaceChildren(body);
  }, [record]);
  return <div ref={holder} class="report" />;
}

/** Tables that may be too wide scroll by themselves, and are reached by the keyboard. */
function makeScroll(body: HTMLElement): void {
  for (const table of body.querySelectorAll('table')) {
    if (table.closest('.scroll')) continue;
    const holder = document.createElement('div');
    holder.className = 'scroll';
    table.replaceWith(holder);
    holder.append(table);
  }
  for (const holder of body.querySelectorAll('.scroll')) {
    holder.setAttribute('tabindex', '0');
    holder.setAttribute('role', 'group');
    holder.setAttribute('aria-label', holder.querySelector('caption')?.textContent ?? 'Table');
  }
}

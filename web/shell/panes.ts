/** Which panes beside the main one are open. On a narrow screen they lie over it, and start closed. */

import { signal } from '@preact/signals';

const isWide = window.matchMedia('(min-width: 1000px)').matches;

export const panes = {
  /** Counts on a narrow screen only: on a wide one the sidebar is always there. */
  sidebar: signal(false),
  inspector: signal(isWide),
  inspectorTab: signal<'variables' | 'files' | 'interpreters'>('variables'),
  help: signal(false),
};

/** Chooses light or dark: as the system does, until the user says otherwise; the choice is kept in this browser. */

import { computed, type ReadonlySignal, signal } from '@preact/signals';

export interface Theme {
  readonly isDark: ReadonlySignal<boolean>;
  toggle(): void;
}

const KEY = 'cuvette-theme';

export function createTheme(): Theme {
  const system = window.matchMedia('(prefers-color-scheme: dark)');
  const systemIsDark = signal(system.matches);
  const chosen = signal(read());
  system.addEventListener('change', ({ matches }) => {
    systemIsDark.value = matches;
  });
  const isDark = computed(() => (chosen.value ? chosen.value === 'dark' : systemIsDark.value));
  isDark.subscribe((dark) => {
    document.documentElement.dataset.theme = dark ? 'dark' : 'light';
  });
  return {
    isDark,
    toggle() {
      chosen.value = isDark.value ? 'light' : 'dark';
      try {
        localStorage.setItem(KEY, chosen.value);
      } catch {
        // A browser that keeps nothing still shows what was chosen.
      }
    },
  };
}

function read(): 'light' | 'dark' | undefined {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === 'light' || kept === 'dark' ? kept : undefined;
  } catch {
    return undefined;
  }
}

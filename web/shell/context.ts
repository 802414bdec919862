/** Hands the page's shared state down to its components. */

import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { AppState } from '../state/app-state.ts';

export const AppContext = createContext<AppState | undefined>(undefined);

export function useApp(): AppState {
  const app = useContext(AppContext);
  if (!app) throw new Error('A component was drawn outside of the app.');
  return app;
}

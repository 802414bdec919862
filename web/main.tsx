/** Starts the page. */

import { render } from 'preact';
import { App } from './shell/app.tsx';
import { createAppState } from './state/app-state.ts';
import './styles/theme.css';
import './styles/base.css';
import './styles/layout.css';
import './styles/cells.css';
import './styles/outputs.css';
import './styles/panels.css';
import './styles/syntax.css';

const root = document.getElementById('app');
if (!root) throw new Error('The page has no element #app.');
render(<App state={createAppState(new URL('./', location.href).href)} />, root);

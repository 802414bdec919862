/** Builds the page into dist/web: index.html, and everything else under ui/ with names that change with their content, but for the frame's document. */

import { copyFileSync, mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { defineConfig, type Plugin } from 'vite';

const here = import.meta.dirname;
const outDir = resolve(here, '../dist/web');

/** Vite would add to it; it is shipped as it is. */
const frameDocument: Plugin = {
  name: 'frame-document',
  closeBundle() {
    mkdirSync(join(outDir, 'ui'), { recursive: true });
    copyFileSync(join(here, 'frame.html'), join(outDir, 'ui', 'frame.html'));
  },
};

export default defineConfig({
  root: here,
  base: './',
  configFile: false,
  publicDir: false,
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  plugins: [frameDocument],
  build: {
    outDir,
    emptyOutDir: true,
    assetsDir: 'ui',
    target: 'es2022',
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: false,
  },
});

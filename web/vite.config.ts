/** Builds the page into dist/web: index.html, and everything else under ui/ with names that change with their content, but for the frames' documents. */

import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { defineConfig, type Plugin } from 'vite';

const here = import.meta.dirname;
const outDir = resolve(here, '../dist/web');

/**
 * The document of the frame that HTML outputs are shown in, twice: in `frame.html` only its own script runs, which is named by its hash; in
 * `frame-scripts.html`, for which a person is asked, those of the output run, too.
 */
const frameDocuments: Plugin = {
  name: 'frame-documents',
  closeBundle() {
    const text = readFileSync(join(here, 'frame.html'), 'utf8');
    const [, script = ''] = /<script>([\s\S]*?)<\/script>/.exec(text) ?? [];
    const hash = createHash('sha256').update(script).digest('base64');
    mkdirSync(join(outDir, 'ui'), { recursive: true });
    writeFileSync(join(outDir, 'ui', 'frame.html'), text.replace('SCRIPT_POLICY', `'sha256-${hash}'`));
    const open = "'unsafe-inline' 'unsafe-eval' blob:";
    writeFileSync(join(outDir, 'ui', 'frame-scripts.html'), text.replace('SCRIPT_POLICY', open));
  },
};

export default defineConfig({
  root: here,
  base: './',
  configFile: false,
  publicDir: false,
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  plugins: [frameDocuments],
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

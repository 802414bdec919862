/** Builds the views of MCP Apps, each into one HTML file that needs nothing else: a host shows it without being able to fetch more. */

import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { build } from 'vite';

const ROOT = resolve(import.meta.dirname, '..');
const WEB = join(ROOT, 'dist', 'web');
const APPS = { 'app-execution': 'execution-app.tsx', 'app-verdict': 'verdict-app.tsx' };

export async function buildApps() {
  mkdirSync(WEB, { recursive: true });
  for (const [name, entry] of Object.entries(APPS)) {
    const { output } = await build({
      root: join(ROOT, 'web'),
      configFile: false,
      publicDir: false,
      logLevel: 'error',
      oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
      build: {
        write: false,
        target: 'es2022',
        modulePreload: { polyfill: false },
        cssCodeSplit: false,
        rolldownOptions: { input: join(ROOT, 'web', 'apps', entry), output: { codeSplitting: false } },
      },
    });
    const script = output.flatMap((one) => (one.type === 'chunk' ? [one.code] : [])).join('\n');
    const style = output.flatMap((one) => (one.fileName.endsWith('.css') ? [String(one.source)] : [])).join('\n');
    writeFileSync(join(WEB, `${name}.html`), page(name, script, style));
  }
}

function page(name, script, style) {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${name === 'app-verdict' ? 'Verdict' : 'Execution'}</title>
<style>${style.replaceAll('</style', '<\\/style')}</style>
</head>
<body>
<script type="module">${script.replaceAll('</script', '<\\/script')}</script>
</body>
</html>
`;
}

/** Makes a plain view for a host that shows MCP Apps: a page without dependencies that shows an answer's text, pictures and tables. */

import { VERSION } from '../../version.ts';

const PROTOCOL = '2026-01-26';

export function plainView(title: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>${title}</title>
<style>
:root { color-scheme: light dark; font: 13px/1.45 system-ui, sans-serif; }
body { margin: 0; padding: 8px; }
pre { margin: 0 0 8px; white-space: pre-wrap; overflow-wrap: anywhere; font: 12px/1.45 ui-monospace, monospace; }
img { display: block; max-width: 100%; margin: 0 0 8px; background: #fff; }
iframe { width: 100%; height: 280px; border: 0; background: #fff; }
.failed { border-left: 3px solid #c33; padding-left: 8px; }
</style>
</head>
<body>
<main aria-live="polite"></main>
<script>
const PARENT = window.parent;
const main = document.querySelector('main');
const send = (message) => PARENT.postMessage({ jsonrpc: '2.0', ...message }, '*');
const add = (tag, fields) => main.append(Object.assign(document.createElement(tag), fields));
function show({ content = [], _meta = {}, isError }) {
  main.replaceChildren();
  main.className = isError ? 'failed' : '';
  const { html = [] } = _meta['cuvette/view'] ?? {};
  for (const part of content) {
    if (part.type === 'text') add('pre', { textContent: part.text });
    if (part.type === 'image') add('img', { src: 'data:' + part.mimeType + ';base64,' + part.data, alt: '' });
  }
  // What code has made is shown in a document that runs no scripts.
  for (const srcdoc of html) {
    const frame = document.createElement('iframe');
    frame.setAttribute('sandbox', '');
    frame.srcdoc = srcdoc;
    main.append(frame);
  }
  const { width, height } = document.documentElement.getBoundingClientRect();
  send({ method: 'ui/notifications/size-changed', params: { width: Math.ceil(width), height: Math.ceil(height) } });
}
window.addEventListener('message', ({ source, data }) => {
  if (source !== PARENT || data?.jsonrpc !== '2.0') return;
  if (data.id === 1 && data.result) send({ method: 'ui/notifications/initialized' });
  else if (data.method === 'ui/notifications/tool-result') show(data.params);
  else if (data.id !== undefined && data.method) send({ id: data.id, result: {} });
});
send({ id: 1, method: 'ui/initialize', params: {
  appInfo: { name: 'cuvette', version: '${VERSION}' }, appCapabilities: {}, protocolVersion: '${PROTOCOL}',
} });
</script>
</body>
</html>
`;
}

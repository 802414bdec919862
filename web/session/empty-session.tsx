/** Says what to do next where there is nothing yet: no session, or a session in which nothing ran. */

import type { Session } from '../api/schemas.ts';
import { nameOf } from '../state/app-state.ts';

export function EmptySession({ session }: { session: Session }) {
  return (
    <div class="empty">
      <h2>Nothing ran in {nameOf(session)} yet</h2>
      <p>
        What your agent runs here appears by itself. Or run something of your own below: it shares the agent's variables
        and files.
      </p>
      <pre>
        <code>{'import sys\nprint(f"hello from Python {sys.version.split()[0]}")'}</code>
      </pre>
    </div>
  );
}

export function NoSession() {
  const service = new URL('./', location.href).href;
  return (
    <div class="empty">
      <h2>Connect your agent</h2>
      <p>Sessions appear here as soon as somebody works in one.</p>
      <h3>Claude Code</h3>
      <pre>
        <code>{`claude mcp add --transport http cuvette ${new URL('mcp', service).href}`}</code>
      </pre>
      <h3>Cursor, and other clients with mcpServers</h3>
      <pre>
        <code>{`{ "mcpServers": { "cuvette": { "url": "${new URL('mcp', service).href}" } } }`}</code>
      </pre>
      <h3>LibreChat, as its code interpreter</h3>
      <pre>
        <code>{`LIBRECHAT_CODE_BASEURL=${new URL('v1', service).href}`}</code>
      </pre>
      <h3>Your shell</h3>
      <pre>
        <code>cuvette run -c 'print("hello")'</code>
      </pre>
    </div>
  );
}

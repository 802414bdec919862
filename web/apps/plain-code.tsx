/** Draws code without colours, folded where it is long: a view in a host is small, and a grammar is not. */

export function PlainCode({ code }: { code: string }) {
  const lines = code.split('\n').length;
  const text = (
    <div class="code">
      <pre>
        <code class="line">{code}</code>
      </pre>
    </div>
  );
  if (lines <= 12) return text;
  return (
    <details>
      <summary class="quiet">{lines} lines of code</summary>
      {text}
    </details>
  );
}

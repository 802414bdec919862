/** Draws Markdown as elements of the page, one for each token: HTML in it is shown as text, links open elsewhere, pictures only where they are in it. */

import { Lexer, type Token, type Tokens } from 'marked';
import type { ComponentChildren, JSX } from 'preact';
import { CodeView } from '../cells/code-view.tsx';
import { lazy } from '../shell/lazy.tsx';
import { Scrolling } from '../shell/scrolling.tsx';

const Formula = lazy(async () => (await import('./latex.tsx')).Formula);

export function Markdown({ text }: { text: string }) {
  return <div class="markdown">{blocks(new Lexer({ gfm: true }).lex(text))}</div>;
}

function blocks(tokens: readonly Token[]): ComponentChildren {
  return tokens.map((token, index) => <Block key={index} token={token} />);
}

function Block({ token }: { token: Token }): JSX.Element | null {
  switch (token.type) {
    case 'heading':
      return heading(Number(token.depth), inline(token.tokens));
    case 'paragraph':
      return <p>{inline(token.tokens)}</p>;
    case 'text':
      return <>{token.tokens ? inline(token.tokens) : formulas(String(token.text))}</>;
    case 'code':
      return <CodeView code={String(token.text)} language={String(token.lang ?? '')} />;
    case 'blockquote':
      return <blockquote>{blocks(token.tokens ?? [])}</blockquote>;
    case 'list': {
      const { ordered, items } = token as Tokens.List;
      const children = items.map((item, index) => <li key={index}>{blocks(item.tokens)}</li>);
      return ordered ? <ol>{children}</ol> : <ul>{children}</ul>;
    }
    case 'table':
      return <MarkdownTable table={token as Tokens.Table} />;
    case 'hr':
      return <hr />;
    case 'space':
      return null;
    default:
      return <p>{token.raw}</p>;
  }
}

/** The page has headings of its own, so that those of an output begin further down. */
function heading(depth: number, children: ComponentChildren): JSX.Element {
  if (depth <= 1) return <h4>{children}</h4>;
  return depth === 2 ? <h5>{children}</h5> : <h6>{children}</h6>;
}

function MarkdownTable({ table }: { table: Tokens.Table }) {
  return (
    <Scrolling class="frame-table" label="Table">
      <table>
        <thead>
          <tr>
            {table.header.map((cell, index) => (
              <th key={index} scope="col">
                {inline(cell.tokens)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {table.rows.map((row, index) => (
            <tr key={index}>
              {row.map((cell, column) => (
                <td key={column}>{inline(cell.tokens)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Scrolling>
  );
}

function inline(tokens: readonly Token[] | undefined): ComponentChildren {
  return (tokens ?? []).map((token, index) => <Inline key={index} token={token} />);
}

function Inline({ token }: { token: Token }): JSX.Element {
  switch (token.type) {
    case 'strong':
      return <strong>{inline(token.tokens)}</strong>;
    case 'em':
      return <em>{inline(token.tokens)}</em>;
    case 'del':
      return <del>{inline(token.tokens)}</del>;
    case 'codespan':
      return <code>{token.text}</code>;
    case 'br':
      return <br />;
    case 'link':
      return <Link href={String(token.href)}>{inline(token.tokens)}</Link>;
    case 'image':
      return <Picture href={String(token.href)} text={String(token.text)} />;
    case 'text':
    case 'escape':
      return <>{formulas(String(token.text))}</>;
    default:
      return <>{token.raw}</>;
  }
}

function Link({ href, children }: { href: string; children: ComponentChildren }) {
  if (!/^(https?|mailto):/i.test(href)) return <>{children}</>;
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow" referrerpolicy="no-referrer">
      {children}
    </a>
  );
}

function Picture({ href, text }: { href: string; text: string }) {
  if (!/^data:image\/(png|jpeg|gif|webp|svg\+xml)[;,]/i.test(href)) return <span>[{text}]</span>;
  return <img src={href} alt={text} />;
}

const MATH = /\$\$([^$]+)\$\$|\$([^\s$](?:[^$\n]*[^\s$])?)\$(?!\d)/g;

function formulas(text: string): ComponentChildren {
  const pieces: ComponentChildren[] = [];
  let from = 0;
  for (const match of text.matchAll(MATH)) {
    pieces.push(text.slice(from, match.index));
    const [all, block, within] = match;
    pieces.push(<Formula key={from} source={block ?? within ?? ''} isBlock={block !== undefined} />);
    from = match.index + all.length;
  }
  pieces.push(text.slice(from));
  return pieces;
}

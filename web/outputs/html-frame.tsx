/**
 * Shows HTML that code has made, in a frame that can reach nothing: an opaque origin, no network, no forms, no way to the page but one port that
 * carries a height and a count. The frame's own document, with its own policy, is `frame.html`.
 */

import { useEffect, useRef, useState } from 'preact/hooks';

const LEAST_HEIGHT = 24;
const MOST_HEIGHT = 1_600;
/** A document that grows with its frame would never come to rest. */
const MOST_CHANGES = 300;

/** Scripts run only where a person asks for them: they can still use the processor, and WebRTC by ways that no browser closes. */
export function HtmlFrame({ html }: { html: string }) {
  const [runsScripts, setRunsScripts] = useState(false);
  const hasScripts = /<script|\son\w+\s*=|javascript:/i.test(html);
  return (
    <div class="html-output">
      <Frame key={String(runsScripts)} html={html} runsScripts={runsScripts} />
      {hasScripts && !runsScripts && (
        <button type="button" class="placeholder" onClick={() => setRunsScripts(true)}>
          This HTML has scripts. <span>Run them</span>
        </button>
      )}
    </div>
  );
}

function Frame({ html, runsScripts }: { html: string; runsScripts: boolean }) {
  const frame = useRef<HTMLIFrameElement>(null);
  const [height, setHeight] = useState(80);
  const [blocked, setBlocked] = useState(0);
  const [hasLeft, setLeft] = useState(false);
  const loads = useRef(0);
  const port = useRef<MessagePort>(undefined);
  useEffect(() => () => port.current?.close(), []);

  const onLoad = () => {
    loads.current += 1;
    // A frame that is loaded again went elsewhere by itself: it gets nothing, and is taken away.
    if (loads.current > 1) return setLeft(true);
    const channel = new MessageChannel();
    let changes = 0;
    channel.port1.onmessage = ({ data }: MessageEvent<unknown>) => {
      const told = readMessage(data);
      if (told?.kind === 'blocked') setBlocked(told.count);
      if (told?.kind !== 'height' || changes > MOST_CHANGES) return;
      changes += 1;
      setHeight(Math.min(MOST_HEIGHT, Math.max(LEAST_HEIGHT, told.height)));
    };
    port.current = channel.port1;
    const isDark = document.documentElement.dataset.theme === 'dark';
    // The frame's origin is opaque, so no target can be named; it is given only what it is to show.
    frame.current?.contentWindow?.postMessage({ html, isDark }, '*', [channel.port2]);
  };

  if (hasLeft) return <p class="quiet bad">This HTML tried to leave its frame, and was closed.</p>;
  return (
    <>
      <iframe
        ref={frame}
        title="HTML output"
        sandbox="allow-scripts"
        src={runsScripts ? './ui/frame-scripts.html' : './ui/frame.html'}
        referrerpolicy="no-referrer"
        allow=""
        loading="lazy"
        style={{ height: `${height}px` }}
        onLoad={onLoad}
      />
      {runsScripts && blocked > 0 && (
        <p class="quiet">
          It asked for {blocked === 1 ? 'a file' : `${blocked} files`} from the network, which outputs do not get.
        </p>
      )}
    </>
  );
}

type FrameMessage = { kind: 'height'; height: number } | { kind: 'blocked'; count: number };

function readMessage(data: unknown): FrameMessage | undefined {
  if (typeof data !== 'object' || data === null) return undefined;
  if ('height' in data && typeof data.height === 'number' && Number.isFinite(data.height))
    return { kind: 'height', height: data.height };
  if ('blocked' in data && typeof data.blocked === 'number' && Number.isFinite(data.blocked))
    return { kind: 'blocked', count: Math.min(9_999, Math.max(0, Math.round(data.blocked))) };
  return undefined;
}

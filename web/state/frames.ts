/** Runs work once a frame at most, however often it is asked for; while the page is hidden, a few times a second. */

export interface Frames {
  /** The last work that was given for a key before the frame is the one that is done. */
  once(key: object, work: () => void): void;
  stop(): void;
}

const HIDDEN_WAIT = 500;

export function createFrames(): Frames {
  const waiting = new Map<object, () => void>();
  let frame = 0;
  let timer = 0;

  function run(): void {
    cancelAnimationFrame(frame);
    clearTimeout(timer);
    frame = 0;
    timer = 0;
    const works = [...waiting.values()];
    waiting.clear();
    for (const work of works) work();
  }

  return {
    once(key, work) {
      waiting.set(key, work);
      if (frame || timer) return;
      if (document.hidden) timer = window.setTimeout(run, HIDDEN_WAIT);
      else {
        frame = requestAnimationFrame(run);
        // A page that is hidden in this very moment gets no frame.
        timer = window.setTimeout(run, HIDDEN_WAIT);
      }
    },
    stop() {
      cancelAnimationFrame(frame);
      clearTimeout(timer);
      waiting.clear();
    },
  };
}

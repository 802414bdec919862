/**
 * Collects the output of one execution for a caller who gets it whole: stdout, stderr, and images. Long text is on the disk, escaped as
 * the JSON of an answer has it.
 */

import * as z from 'zod';
import type { Spill, Spills } from '../files/spill.ts';
import type { MimeBundle, Output } from '../interpreters/interpreter.ts';
import type { Execution } from './execution.ts';
import { escapeText, type Text } from './long-text.ts';
import { imageIn, streamOf, textOf } from './output-text.ts';

export interface ShownImage {
  mimeType: string;
  base64: string;
  /** The files that the code has saved the same figure to, by the paths that the code sees. */
  savedAs: string[];
}

export interface CollectedOutput {
  /** What has come up to now. */
  text(name: 'stdout' | 'stderr'): Text;
  readonly images: ShownImage[];
  /** Takes no more, and gives up the pictures and the execution: the texts may be kept for long. */
  stop(): void;
  /** Bytes of the texts that are on the disk. */
  readonly size: number;
  /** Gives up the texts: those that were asked for can be read no more. */
  release(): void;
}

/** Characters of a text that is held in memory. */
const SHORT = 64_000;
const PIECE = 64 << 10;

/** Whole and in order: what a file was printed to is what its reader gets. */
export function collectOutput(execution: Execution, spills: Spills): CollectedOutput {
  const texts = { stdout: collectText(spills), stderr: collectText(spills) };
  const pictures: { picture: ShownImage; displayId: string | undefined }[] = [];
  let unwatch: (() => void) | undefined = execution.onOutput((output) => {
    const picture = pictureIn(output);
    if (picture) show(picture, output);
    return texts[streamOf(output)].add(textOf(output));
  });

  /** One that is shown anew takes its own place. */
  function show(picture: ShownImage, output: Output): void {
    const { displayId, update } = output.type === 'display' ? output : {};
    const earlier = update ? pictures.find((one) => one.displayId === displayId) : undefined;
    if (earlier) earlier.picture = picture;
    else pictures.push({ picture, displayId });
  }

  const stop = () => {
    unwatch?.();
    unwatch = undefined;
    pictures.length = 0;
  };

  return {
    text: (name) => texts[name].text(),
    get images() {
      return pictures.map(({ picture }) => picture);
    },
    stop,
    get size() {
      return texts.stdout.size() + texts.stderr.size();
    },
    release() {
      stop();
      texts.stdout.release();
      texts.stderr.release();
    },
  };
}

function collectText(spills: Spills) {
  let short: string[] = [];
  let length = 0;
  let long: Spill | undefined;
  let last = '';

  return {
    add(text: string): Promise<void> | undefined {
      if (text === '') return undefined;
      length += text.length;
      last = text.slice(-1);
      if (!long) short.push(text);
      if (!long && length <= SHORT) return undefined;
      long ??= spills.create(0);
      for (const one of long.size === 0 ? short : [text]) long.add(escapeText(one));
      short = [];
      return long.room();
    },
    text(): Text {
      if (!long) return short.join('');
      return longText(long, long.size, last === '\n');
    },
    size: () => long?.size ?? 0,
    release: () => long?.close(),
  };
}

/** As much of it as there is now. */
function longText(spill: Spill, size: number, endsLine: boolean): Text {
  return {
    async *escaped() {
      for (let offset = 0; offset < size; ) {
        const piece = await spill.read(offset, Math.min(PIECE, size - offset));
        offset += piece.length;
        yield piece;
      }
    },
    endsLine,
  };
}

function pictureIn(output: Output): ShownImage | undefined {
  if (!('data' in output)) return undefined;
  const image = imageIn(output.data);
  return image && { ...image, savedAs: savedAs(output.metadata) };
}

/** What the driver notes beside a figure; anybody else's metadata may have the same name. */
function savedAs(metadata: MimeBundle): string[] {
  return z.array(z.string()).safeParse(metadata.saved_as).data ?? [];
}

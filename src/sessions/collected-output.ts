/** The output of one execution as a program's caller expects it: all that went to stdout, all that went to stderr, and its pictures. */

import type { Execution } from './execution.ts';
import { imageIn, streamOf, textOf } from './text.ts';

export interface Picture {
  mimeType: string;
  base64: string;
}

export interface CollectedOutput {
  readonly stdout: string;
  readonly stderr: string;
  readonly pictures: Picture[];
}

/** Whole and in order: what a file was printed to is what its reader gets. */
export function collectOutput(execution: Execution): CollectedOutput {
  const texts: Record<'stdout' | 'stderr', string[]> = { stdout: [], stderr: [] };
  const pictures: Picture[] = [];
  execution.onOutput((output) => {
    const picture = 'data' in output ? imageIn(output.data) : undefined;
    if (picture) pictures.push(picture);
    texts[streamOf(output)].push(textOf(output));
  });
  return {
    get stdout() {
      return texts.stdout.join('');
    },
    get stderr() {
      return texts.stderr.join('');
    },
    pictures,
  };
}

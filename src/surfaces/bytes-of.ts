/** Text and bytes as one stream of bytes, in which short texts that follow each other are one piece. */

/** Characters. */
const LONG = 64 << 10;

export async function* bytesOf(pieces: AsyncIterable<string | Uint8Array>): AsyncGenerator<Uint8Array> {
  let text = '';
  for await (const piece of pieces) {
    if (typeof piece === 'string') text += piece;
    if (text !== '' && (typeof piece !== 'string' || text.length >= LONG)) {
      yield Buffer.from(text);
      text = '';
    }
    if (typeof piece !== 'string') yield piece;
  }
  if (text !== '') yield Buffer.from(text);
}

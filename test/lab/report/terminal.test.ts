import { describe, expect, it } from 'vitest';
import { drawRecord } from '../../../src/lab/report/terminal.ts';
import { terminalStyle } from '../../../src/lab/report/terminal-style.ts';
import { sampleRecord } from './sample-record.ts';
import { withTexts } from './well-formed.ts';

const PLAIN = { columns: 80, unicode: true, colour: false };
const ESCAPE = '\u001b';

describe('a record in the terminal', () => {
  it('says what the page says', () => {
    const text = drawRecord(sampleRecord(), PLAIN);
    expect(text).toContain('Causal  (causal: sufficient-and-necessary)');
    expect(text).toContain('AUROC 0.99 [0.96, 1.00], p = 0.005');
    expect(text).toContain('0.93 [0.87, 0.99] present');
    expect(text).toMatch(/✓ Harm to all other tokens, in nats: 0.03, by the whole activation 0.05/);
    expect(text).toMatch(/➜ Sufficient and necessary/);
    expect(text).toContain('the keys 1 ➜ " are", with the component swapped " is"');
    expect(drawRecord(sampleRecord('bystander'), PLAIN)).toMatch(/✗ Harm to all other tokens/);
  });

  it('draws an effect beyond its null where it is, and within it where it is not', () => {
    const line = (kind: 'mediator' | 'bystander') =>
      drawRecord(sampleRecord(kind), PLAIN).match(/S steering {6}(.*?) {2}\S+ \[/)?.[1] ?? '';
    expect(line('mediator')).toMatch(/[▁-█]+ +─*◆/);
    expect(line('bystander')).toMatch(/^[▁-█ ]*[▁-█]◆[▁-█]/);
  });

  it.each([56, 64, 80, 100])('fits into %i columns', (columns) => {
    for (const unicode of [true, false]) {
      const lines = drawRecord(sampleRecord(), { columns, unicode, colour: false }).split('\n');
      expect(lines.filter((line) => line.length > columns)).toEqual([]);
      expect(lines.filter((line) => line !== line.trimEnd())).toEqual([]);
    }
  });

  it('is plain ASCII where nothing else is known', () => {
    const text = drawRecord(sampleRecord(), { ...PLAIN, unicode: false });
    expect(text).toMatch(/^[ -~\n]*$/);
    expect(text).toContain('-2.00 lengths');
    expect(text).not.toContain('?\n');
  });

  it('has colours only if asked to', () => {
    expect(drawRecord(sampleRecord(), PLAIN)).not.toContain(ESCAPE);
    const text = drawRecord(sampleRecord(), { ...PLAIN, colour: true });
    expect(text).toContain(`${ESCAPE}[1;32mCausal${ESCAPE}[0m`);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: this is how a terminal is told of colours.
    expect(text.replace(/\u001b\[[\d;]*m/g, '')).toBe(drawRecord(sampleRecord(), PLAIN));
  });

  it('strips terminal commands from names', () => {
    const text = drawRecord(withTexts(sampleRecord(), `${ESCAPE}]0;owned\u0007${ESCAPE}[2J\u009b1m`), PLAIN);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: such characters are what must not be there.
    expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
  });
});

describe('a terminal', () => {
  const utf8 = { LANG: 'en_US.UTF-8', TERM: 'xterm' };

  it('gets colours unless it is a pipe or dumb, or NO_COLOR is set', () => {
    expect(terminalStyle({ isTTY: true, columns: 90 }, utf8)).toEqual({ columns: 90, unicode: true, colour: true });
    expect(terminalStyle({}, utf8).colour).toBe(false);
    expect(terminalStyle({ isTTY: true }, { ...utf8, NO_COLOR: '1' }).colour).toBe(false);
    expect(terminalStyle({ isTTY: true }, { ...utf8, TERM: 'dumb' }).colour).toBe(false);
  });

  it('gets ASCII unless its locale is UTF-8', () => {
    expect(terminalStyle({}, {}).unicode).toBe(false);
    expect(terminalStyle({}, { LANG: 'C' }).unicode).toBe(false);
    expect(terminalStyle({}, { LC_ALL: 'C', LANG: 'de_DE.UTF-8' }).unicode).toBe(false);
    expect(terminalStyle({}, { LANG: 'C.utf8' }).unicode).toBe(true);
  });

  it('is drawn in within a range of widths', () => {
    expect(terminalStyle({ columns: 10 }, {}).columns).toBe(56);
    expect(terminalStyle({ columns: 400 }, {}).columns).toBe(100);
    expect(terminalStyle({}, {}).columns).toBe(80);
  });
});

/** Reads the SGR sequences of a terminal (colours, bold, underline, …) into a style. Writing styled text is `terminal.ts`'s. */

/** A colour of the palette by its number, 0 to 15, or a colour as CSS writes it. */
export type Colour = number | string;

export interface Style {
  readonly fg?: Colour;
  readonly bg?: Colour;
  readonly bold?: boolean;
  readonly dim?: boolean;
  readonly italic?: boolean;
  readonly underline?: boolean;
  readonly strike?: boolean;
  readonly inverse?: boolean;
}

export const PLAIN: Style = Object.freeze({});

/** The style after a sequence such as `1;38;5;208`. Unknown numbers change nothing. */
export function applySgr(style: Style, parameters: string): Style {
  const codes = parameters.split(/[;:]/).map((code) => (code === '' ? 0 : Number(code)));
  let next: Style = style;
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i] ?? 0;
    if (code === 38 || code === 48) {
      const { colour, used } = extendedColour(codes.slice(i + 1));
      if (colour !== undefined) next = code === 38 ? { ...next, fg: colour } : { ...next, bg: colour };
      i += used;
    } else next = applyCode(next, code);
  }
  return isPlain(next) ? PLAIN : next;
}

const FLAGS: Record<number, Style> = {
  1: { bold: true },
  2: { dim: true },
  3: { italic: true },
  4: { underline: true },
  7: { inverse: true },
  9: { strike: true },
  22: { bold: false, dim: false },
  23: { italic: false },
  24: { underline: false },
  27: { inverse: false },
  29: { strike: false },
};

function applyCode(style: Style, code: number): Style {
  if (code === 0) return PLAIN;
  if (code >= 30 && code <= 37) return { ...style, fg: code - 30 };
  if (code >= 40 && code <= 47) return { ...style, bg: code - 40 };
  if (code >= 90 && code <= 97) return { ...style, fg: code - 82 };
  if (code >= 100 && code <= 107) return { ...style, bg: code - 92 };
  if (code === 39) return without(style, 'fg');
  if (code === 49) return without(style, 'bg');
  const flags = FLAGS[code];
  return flags ? { ...style, ...flags } : style;
}

function without(style: Style, key: 'fg' | 'bg'): Style {
  const { [key]: _, ...rest } = style;
  return rest;
}

function extendedColour([kind, a, b, c]: number[]): { colour?: Colour; used: number } {
  if (kind === 5 && a !== undefined) return { colour: paletteColour(a), used: 2 };
  if (kind === 2 && a !== undefined && b !== undefined && c !== undefined) return { colour: rgb(a, b, c), used: 4 };
  return { used: 1 };
}

const STEPS = [0, 95, 135, 175, 215, 255];

function paletteColour(index: number): Colour {
  if (index < 16) return Math.max(0, index);
  if (index > 231) {
    const grey = 8 + (Math.min(index, 255) - 232) * 10;
    return rgb(grey, grey, grey);
  }
  const cube = index - 16;
  const step = (value: number) => STEPS[value % 6] ?? 0;
  return rgb(step(Math.floor(cube / 36)), step(Math.floor(cube / 6)), step(cube));
}

function rgb(red: number, green: number, blue: number): string {
  const byte = (value: number) => Math.max(0, Math.min(255, Math.round(value) || 0));
  return `rgb(${byte(red)} ${byte(green)} ${byte(blue)})`;
}

function isPlain(style: Style): boolean {
  return Object.values(style).every((value) => value === false || value === undefined);
}

export function sameStyle(a: Style, b: Style): boolean {
  if (a === b) return true;
  return (
    a.fg === b.fg &&
    a.bg === b.bg &&
    !a.bold === !b.bold &&
    !a.dim === !b.dim &&
    !a.italic === !b.italic &&
    !a.underline === !b.underline &&
    !a.strike === !b.strike &&
    !a.inverse === !b.inverse
  );
}

/** Makes the vocabularies and the prompts of the third set: sentences of fillers around content words, in pairs that share everything else or each for itself. */

import { missing } from '../../../../src/lab/core/missing.ts';
import type { Random } from '../../../../src/lab/statistics/random.ts';
import type { Example, Label } from '../family.ts';

/** No model makes anything of them. */
const FILLERS: readonly string[] = [
  ...['miller', 'baker', 'sailor', 'queen', 'his', 'her', 'their', 'this', 'that', 'brought', 'found', 'sold', 'kept'],
  ...['saw', 'in', 'by', 'with', 'before', 'after', 'harbour', 'valley', 'bridge', 'castle', 'forest', 'mill', 'cart'],
  ...['basket', 'candle', 'silver', 'copper', 'wooden', 'heavy', 'quiet', 'early', 'late', 'again', 'once', 'often'],
];

/** The last word of a prompt. */
export const ENDS: readonly string[] = [':', 'therefore', 'meaning', 'which'];

export type ByLabel<T> = Record<Label, T>;

export interface Words {
  all: readonly string[];
  content: ByLabel<readonly string[]>;
  targets: Targets;
}

export interface Targets {
  positive: readonly string[];
  negative: readonly string[];
}

/** `perLabel` content words stand for each label; `extras` are words that a family gives a meaning itself. */
export function createWords(
  random: Random,
  { perLabel, extras, targets }: { perLabel: number; extras: readonly string[]; targets: Targets },
): Words {
  const coined = new Set<string>();
  while (coined.size < 2 * perLabel) coined.add(coinedWord(random));
  const list = [...coined];
  const all = new Set([...FILLERS, ...ENDS, ...targets.positive, ...targets.negative, ...extras, ...list]);
  return {
    all: ['<unk>', ...random.shuffle(all)],
    content: { 1: list.slice(0, perLabel), 0: list.slice(perLabel) },
    targets,
  };
}

function coinedWord(random: Random): string {
  const onset = () => random.choose(['br', 'ch', 'dw', 'fl', 'gr', 'kl', 'pr', 'qu', 'sh', 'sk', 'tr', 'v', 'w', 'z']);
  const rhyme = () => random.choose(['ab', 'eck', 'ilm', 'oon', 'ust', 'ay', 'erp', 'ind', 'olt', 'uff']);
  return onset() + rhyme() + onset() + rhyme();
}

export interface Frame {
  /** Words that stand first in every prompt. */
  lead?: readonly string[];
  /** How many fillers come before the content, at least and at most. */
  before?: readonly [number, number];
  /** How many fillers stand between the content and the last word. */
  after?: number;
  ending?: string;
}

/** Draws the fillers once, and then writes a prompt around any content. */
export function sentence(random: Random, frame: Frame = {}): (...content: string[]) => string {
  const { lead = [], before = [1, 4], after = 2, ending = random.choose(ENDS) } = frame;
  const fillers = (count: number) => Array.from({ length: count }, () => random.choose(FILLERS));
  const first = fillers(before[0] + random.integer(before[1] - before[0] + 1));
  const last = fillers(after);
  return (...content) => [...lead, ...first, ...content, ...last, ending].join(' ');
}

/** Makes what the two prompts of a pair share, and then each of them by its label. */
export type Writer = (index: number, random: Random) => (label: Label) => string;

/** The usual writer: a frame around one content word; pairs take the words in turn. */
export function oneWord(content: ByLabel<readonly string[]>, frame: (index: number) => Frame = () => ({})): Writer {
  return (index, random) => {
    const write = sentence(random, frame(index));
    return (label) => write(inTurn(content[label], index));
  };
}

export function inTurn<T>(values: readonly T[], index: number): T {
  return values[index % values.length] ?? missing('value', index);
}

export function paired(random: Random, count: number, writer: Writer, template?: (index: number) => string): Example[] {
  return Array.from({ length: count }, (_, index) => {
    const write = writer(index, random);
    return ([1, 0] as const).map((label) => ({
      prompt: write(label),
      label,
      pair: `pair ${index}`,
      ...(template && { template: template(index) }),
    }));
  }).flat();
}

export function unpaired(random: Random, counts: ByLabel<number>, writer: Writer): Example[] {
  const labels = [...Array<Label>(counts[1]).fill(1), ...Array<Label>(counts[0]).fill(0)];
  return random.shuffle(labels).map((label) => ({ prompt: writer(random.integer(10_000), random)(label), label }));
}

/** Exchanges the labels within a share of the pairs, as a careless annotator would. */
export function mislabelled(examples: readonly Example[], share: number, random: Random): Example[] {
  const names = [...new Set(examples.map(({ pair }) => pair ?? missing('pair')))];
  const wrong = new Set(random.shuffle(names).slice(0, Math.round(share * names.length)));
  return examples.map((one) =>
    wrong.has(one.pair ?? missing('pair')) ? { ...one, label: one.label === 1 ? 0 : 1 } : one,
  );
}

export function signOf(label: Label): 1 | -1 {
  return label === 1 ? 1 : -1;
}

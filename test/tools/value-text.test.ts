import { describe, expect, it } from 'vitest';
import { valueText } from '../../src/tools/value-text.ts';

describe('the text of a value', () => {
  it('has the window of a table, with what it is a window of', () => {
    const text = valueText('df', {
      ...{ kind: 'table', type: 'pandas.DataFrame', row_count: 1_000_000, total_count: 1_000_000, column_count: 3 },
      ...{ offset: 20, column_offset: 0, index: ['20', '21'] },
      columns: [
        { name: 'n', dtype: 'int64' },
        { name: 'text', dtype: 'object' },
      ],
      rows: [
        [1, 'one\ttwo\nthree'],
        [2, null],
      ],
    });
    expect(text).toBe(
      'df: pandas.DataFrame 1,000,000 × 3, rows 20 to 21 of 1,000,000, columns 1 to 2\n\tn (int64)\ttext (object)\n20\t1\tone two three\n21\t2\t',
    );
  });

  it('has the items of a tree, cut to a line each, and a text as it is', () => {
    const item = { key: 'a', path: "d['a']", type: 'str', preview: 'x'.repeat(100), has_children: false };
    const tree = valueText('d', { kind: 'tree', type: 'dict', items: [item], count: 5, offset: 0 });
    expect(tree).toBe(`d: dict, items 0 to 0 of 5\na: str = ${'x'.repeat(59)}…`);
    expect(valueText('s', { kind: 'text', type: 'str', text: 'a\nb', length: 3 })).toBe('s: str\na\nb');
    expect(valueText('d', { kind: 'tree', type: 'dict', items: [], count: 5, offset: 9 })).toBe(
      'd: dict, none of 5 items',
    );
  });
});

import { expect, test } from 'vitest';
import { drawMap } from '../../../src/lab/report/map-picture.ts';

test('draws each site as a block of its strength, with a minus sign where it acts the other way', () => {
  const rows = [
    { name: '9', values: [0, 0.5, -1] },
    { name: '10', values: [0.01, 1, -0.01] },
  ];
  expect(drawMap({ title: 'a map', rows, columns: ['-3', '-2', '-1'] }).split('\n')).toEqual([
    'a map',
    '    -3 -2 -1',
    ' 9   ·  ▄ -█',
    '10   ·  █  ·',
    '█ = 1.00, - the other way',
  ]);
});

test('draws a map without any effect as dots', () => {
  const picture = drawMap({ title: 'nothing', rows: [{ name: '0', values: [0, 0] }], columns: ['0', '1'] });
  expect(picture.split('\n')[2]).toBe('0   ·  ·');
});

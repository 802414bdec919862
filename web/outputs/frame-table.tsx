/** Draws a DataFrame that was printed as a result. The table that pages through a whole variable is in `panels/`. */

import { Scrolling } from '../shell/scrolling.tsx';
import type { FrameTableCells } from './read-table.ts';

export function FrameTable({ table: { head, rows, note } }: { table: FrameTableCells }) {
  const width = Math.max(0, ...rows.map(({ cells }) => cells.length));
  const isNumeric = Array.from({ length: width }, (_, column) =>
    rows.every(({ cells }) =>
      /^(-?[\d.,]+(e[+-]?\d+)?%?|nan|NaN|inf|-inf|<NA>|None|\.\.\.|)$/i.test(cells[column] ?? ''),
    ),
  );
  return (
    <Scrolling class="frame-table" label={note || 'Table'}>
      <table>
        <thead>
          {head.map((cells, at) => (
            <tr key={at}>
              {cells.map((text, column) => (
                <th key={column} scope="col" class={isNumeric[column] ? 'number' : ''}>
                  {text}
                </th>
              ))}
            </tr>
          ))}
        </thead>
        <tbody>
          {rows.map(({ headers, cells }, at) => (
            <tr key={at}>
              {cells.map((text, column) =>
                column < headers ? (
                  <th key={column} scope="row" class={isNumeric[column] ? 'number' : ''}>
                    {text}
                  </th>
                ) : (
                  <td key={column} class={isNumeric[column] ? 'number' : ''}>
                    {text}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
      {note && <p class="quiet">{note}</p>}
    </Scrolling>
  );
}

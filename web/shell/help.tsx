/** Lists the keyboard's shortcuts. */

import { Dialog } from './dialog.tsx';
import { panes } from './panes.ts';

const SHORTCUTS: [string, [string, string][]][] = [
  [
    'Anywhere',
    [
      ['?', 'this list'],
      ['s', 'the list of sessions'],
      ['v', 'variables'],
      ['f', 'files'],
      ['t', 'light or dark'],
    ],
  ],
  [
    'In a session',
    [
      ['j  k', 'next, previous execution'],
      ['e', 'edit the focused execution, to run it again'],
      ['c', 'write code'],
      ['i', 'interrupt what runs'],
      ['G', 'the latest execution'],
    ],
  ],
  [
    'While writing code',
    [
      ['Shift Enter', 'run'],
      ['↑  ↓', 'earlier code, from the first and the last line'],
      ['Ctrl Space', 'complete'],
      ['Esc', 'back to the executions'],
    ],
  ],
];

export function Help() {
  const close = () => {
    panes.help.value = false;
  };
  return (
    <Dialog title="Keyboard" onClose={close}>
      {SHORTCUTS.map(([where, keys]) => (
        <section key={where} class="shortcuts">
          <h3>{where}</h3>
          <dl>
            {keys.map(([key, what]) => (
              <div key={key}>
                <dt>
                  {key.split(/ +/).map((one) => (
                    <kbd key={one}>{one}</kbd>
                  ))}
                </dt>
                <dd>{what}</dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
    </Dialog>
  );
}

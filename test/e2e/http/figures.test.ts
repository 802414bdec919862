/** Checks that each figure of matplotlib comes back once, as the file that the code has saved it to, or else as one that is made for it. */

import { describe, expect, test } from 'vitest';
import { type ExecAnswer, useService } from './service.ts';

const service = await useService();
const PLOT = 'import io, os\nimport matplotlib.pyplot as plt\nfig, ax = plt.subplots(); ax.plot([1, 2])\n';
const named = ({ files }: ExecAnswer) => files.map(({ name }) => name).sort();

test.each<[string, string, string[]]>([
  ['shown and not saved', 'plt.show()', ['figure-1-1.png']],
  ['neither shown nor saved', 'pass', ['figure-1-1.png']],
  ['saved', 'plt.savefig("p.png")', ['p.png']],
  ['saved, then shown', 'plt.savefig("p.png"); plt.show()', ['p.png']],
  ['saved in full colour and without, then shown', 'fig.savefig("p.png", transparent=True); plt.show()', ['p.png']],
  [
    'saved with all options',
    'fig.savefig("p.png", dpi=50, bbox_inches="tight", facecolor="red"); plt.show()',
    ['p.png'],
  ],
  ['saved, then closed', 'plt.savefig("p.png"); plt.close()', ['p.png']],
  ['closed', 'plt.close("all")', []],
  ['saved in two formats', 'plt.savefig("p.png"); plt.savefig("p.pdf"); plt.show()', ['p.pdf', 'p.png']],
  ['saved as a vector graphic alone', 'plt.savefig("p.svg"); plt.show()', ['p.svg']],
  ['saved below a folder', 'os.makedirs("out/a"); plt.savefig("out/a/p.png"); plt.show()', ['out/a/p.png']],
  ['saved by its whole path', 'plt.savefig("/mnt/data/p.png"); plt.show()', ['p.png']],
  ['saved from another folder', 'os.makedirs("o"); os.chdir("o"); plt.savefig("p.png"); plt.show()', ['o/p.png']],
  ['saved without an extension', 'plt.savefig("p"); plt.show()', ['p.png']],
  ['saved as a path object', 'import pathlib; fig.savefig(pathlib.Path("p.png")); plt.show()', ['p.png']],
  ['saved to an open file', 'with open("p.png", "wb") as f: fig.savefig(f)\nplt.show()', ['p.png']],
  ['saved to memory', 'fig.savefig(io.BytesIO()); plt.show()', ['figure-1-1.png']],
  ['saved, also to memory', 'fig.savefig("p.png"); fig.savefig(io.BytesIO()); plt.show()', ['p.png']],
  ['saved where nobody gets it', 'plt.savefig("/tmp/p.png"); plt.show()', ['figure-1-1.png']],
  ['saved, and the file removed', 'plt.savefig("p.png"); os.remove("p.png"); plt.show()', ['figure-1-1.png']],
  [
    'saved, then changed, then shown',
    'plt.savefig("p.png"); ax.set_title("t"); plt.show()',
    ['figure-1-1.png', 'p.png'],
  ],
  ['saved, changed, and saved again', 'plt.savefig("p.png"); ax.plot([3]); plt.savefig("q.png")', ['p.png', 'q.png']],
  ['shown, then saved', 'plt.show(); fig.savefig("p.png")', ['p.png']],
  ['shown, changed, then saved', 'plt.show(); ax.plot([3]); fig.savefig("p.png")', ['figure-1-1.png', 'p.png']],
  ['saved by a program that fails then', 'plt.savefig("p.png"); 1 / 0', ['p.png']],
  [
    'saved, and shown from its file',
    'plt.savefig("p.png")\nfrom IPython.display import Image\nImage("p.png")',
    ['p.png'],
  ],
])('a figure that is %s comes back as the expected files', async (_, code, files) => {
  expect(named(await service.python(PLOT + code))).toEqual(files);
});

test('of several figures, those that were not saved are made into files', async () => {
  const answer = await service.python(
    'import matplotlib.pyplot as plt\nfor n in range(4):\n    plt.figure(); plt.plot([n])\n    if n % 2: plt.savefig(f"saved-{n}.png")\nplt.show()',
  );
  expect(named(answer)).toEqual(['figure-1-1.png', 'figure-1-2.png', 'saved-1.png', 'saved-3.png']);
});

test('figures of several calls do not overwrite each other, even where each call has a session of its own', async () => {
  const first = await service.python(PLOT);
  const [file] = first.files;
  const reference = { id: file?.id, name: file?.name, storage_session_id: file?.storage_session_id };
  const second = await service.python(`${PLOT}ax.plot([3])\nplt.show()`, { files: [reference] });
  expect(second.files.map(({ name, inherited }) => [name, inherited])).toEqual([
    ['figure-1-2.png', undefined],
    ['figure-1-1.png', true],
  ]);
});

test('plots of pandas come back like other figures', async () => {
  const code = 'import pandas\nax = pandas.DataFrame({"a": [1, 2]}).plot()\n';
  expect(named(await service.python(`${code}ax.get_figure().savefig("p.png")`))).toEqual(['p.png']);
  expect(named(await service.python(`${code}None`))).toEqual(['figure-1-1.png']);
});

test('a figure that is kept and saved in a later call comes back once in each call', async () => {
  const entity_id = 'kept-figure';
  expect(named(await service.python(`${PLOT}plt.show()`, { entity_id }))).toEqual(['figure-1-1.png']);
  expect(named(await service.python('fig.savefig("later.png")', { entity_id }))).toEqual(['later.png']);
});

test('a plotting program in a shell returns the files that it saves', async () => {
  const program = `${PLOT}plt.savefig("p.png"); plt.show()`;
  const answer = await service.bash(`cat > /tmp/plot.py <<'EOF'\n${program}\nEOF\npython3 /tmp/plot.py`);
  expect([named(answer), answer.run.code]).toEqual([['p.png'], 0]);
});

describe('in a stream,', () => {
  test('a figure that is saved after it was shown is an update of the same display', async () => {
    const stream = await service.stream({ lang: 'py', code: `${PLOT}plt.show(); fig.savefig("p.png")` });
    expect(await stream.ended).toBe(true);
    const shown = stream.events.filter(({ type }) => type === 'display');
    expect(shown).toMatchObject([{ display_id: expect.any(String) }, { update: true }]);
    expect(new Set(shown.map(({ display_id }) => display_id)).size).toBe(1);
    expect((await stream.event('done')).files?.map(({ name }) => name)).toEqual(['p.png']);
  });
});

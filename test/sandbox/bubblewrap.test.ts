import { mkdirSync } from 'node:fs';
import { delimiter, dirname, join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { bubblewrapArguments, bubblewrapVersion, findBubblewrap, type Root } from '../../src/sandbox/bubblewrap.ts';
import { SEEN, same } from '../../src/sandbox/layout.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { script } from './script.ts';

const ROOT: Root = {
  mounts: [
    same('/usr'),
    same('/opt/tools/node'),
    { source: '/data/sessions', target: '/cuvette/sessions', isWritable: true },
    { source: '/run/z/passwd', target: '/etc/passwd', isWritable: false },
  ],
  links: [['usr/bin', '/bin']],
  folders: ['/work/project'],
};
const ENV = { PATH: '/usr/bin', HOME: '/x y', EMPTY: '' };

/** How many words follow each option; an unknown one fails the test. */
const WORDS: Record<string, number> = {
  '--cap-drop': 1,
  '--cap-add': 1,
  '--unshare-user': 0,
  '--dir': 1,
  '--symlink': 2,
  '--bind': 2,
  '--ro-bind': 2,
  '--dev': 1,
  '--remount-ro': 1,
  '--chdir': 1,
  '--clearenv': 0,
  '--setenv': 2,
};

interface Step {
  option: string;
  words: string[];
}

function steps(root: Root = ROOT, isRoot = false): Step[] {
  const rest = bubblewrapArguments(root, isRoot, ENV);
  expect(rest.pop()).toBe('--');
  const found: Step[] = [];
  while (rest.length > 0) {
    const option = rest.shift() ?? '';
    const count = WORDS[option];
    if (count === undefined) throw new Error(`the option ${option} is not known here`);
    found.push({ option, words: rest.splice(0, count) });
  }
  return found;
}

function wordsOf(option: string, among = steps()): string[][] {
  return among.filter((step) => step.option === option).map(({ words }) => words);
}

describe('the command line of bubblewrap', () => {
  it('lets only that be written to which is said to be writable; and /proc, which the kernel guards', () => {
    expect(wordsOf('--bind')).toEqual([
      ['/proc', '/proc'],
      ['/data/sessions', '/cuvette/sessions'],
    ]);
    expect(wordsOf('--ro-bind')).toEqual([
      ['/usr', '/usr'],
      ['/opt/tools/node', '/opt/tools/node'],
      ['/run/z/passwd', '/etc/passwd'],
    ]);
  });

  it('makes the root and /dev unwritable once all is in its place', () => {
    const all = steps();
    const first = all.findIndex(({ option }) => option === '--remount-ro');
    const after = all.slice(first).map(({ option }) => option);
    expect(wordsOf('--remount-ro')).toEqual([['/dev'], ['/']]);
    expect([...new Set(after)]).toEqual(['--remount-ro', '--chdir', '--clearenv', '--setenv']);
  });

  it('makes every folder on the way before it puts something there, so that all can enter it', () => {
    const made = new Set<string>(['/']);
    for (const { option, words } of steps()) {
      if (option === '--dir') {
        expect(made, words[0]).toContain(dirname(words[0] ?? ''));
        made.add(words[0] ?? '');
      }
      if (['--bind', '--ro-bind', '--symlink', '--dev'].includes(option))
        expect(made).toContain(dirname(words[1] ?? '/'));
    }
    for (const folder of [...Object.values(SEEN), '/run', '/work/project']) expect(made).toContain(folder);
  });

  it('mounts in the order given, so that what is inside another comes after it', () => {
    const mounts = [same('/usr'), { source: '/opt/node', target: '/usr/local/bin/node' }];
    const targets = wordsOf('--ro-bind', steps({ ...ROOT, mounts })).map(([, target]) => target);
    expect(targets).toEqual(['/usr', '/usr/local/bin/node']);
  });

  it('has the links of the system, and /var/tmp as /tmp', () => {
    expect(wordsOf('--symlink')).toEqual([
      ['usr/bin', '/bin'],
      ['/tmp', '/var/tmp'],
    ]);
  });

  it('forgets the environment, then sets what is given', () => {
    const all = steps();
    const cleared = all.findIndex(({ option }) => option === '--clearenv');
    const set = all.slice(cleared + 1);
    expect(set.map(({ option }) => option)).toEqual(['--setenv', '--setenv', '--setenv']);
    expect(Object.fromEntries(set.map(({ words }) => words))).toEqual(ENV);
    expect(wordsOf('--setenv')).toHaveLength(3);
  });

  it('leaves root no right but to become somebody else, and others a user namespace', () => {
    const root = steps(ROOT, true);
    expect(root.slice(0, 3)).toEqual([
      { option: '--cap-drop', words: ['ALL'] },
      { option: '--cap-add', words: ['CAP_SETUID'] },
      { option: '--cap-add', words: ['CAP_SETGID'] },
    ]);
    expect(wordsOf('--cap-add', root)).toHaveLength(2);
    expect(wordsOf('--unshare-user', root)).toEqual([]);
    expect(wordsOf('--cap-add')).toEqual([]);
    expect(wordsOf('--unshare-user')).toEqual([[]]);
  });
});

describe('bubblewrap', () => {
  it('is the first on PATH that can be run', () => {
    const folder = temporaryFolder();
    script(join(folder, 'first'), 'bwrap', '', 0o644);
    const second = script(join(folder, 'second'), 'bwrap');
    script(join(folder, 'third'), 'bwrap');
    const folders = ['', 'nowhere', 'first', 'second', 'third'].map((name) => name && join(folder, name));
    expect(findBubblewrap({ PATH: folders.join(delimiter) })).toBe(second);
  });

  it('is not a folder of that name', () => {
    const folder = temporaryFolder();
    mkdirSync(join(folder, 'bwrap'));
    expect(findBubblewrap({ PATH: folder })).toBeUndefined();
  });

  it('is not looked for in the current folder or from there, and may be absent', () => {
    const folder = temporaryFolder();
    script(folder, 'bwrap');
    expect(findBubblewrap({ PATH: relative(process.cwd(), folder) })).toBeUndefined();
    expect(findBubblewrap({ PATH: '' })).toBeUndefined();
    expect(findBubblewrap({})).toBeUndefined();
    expect(findBubblewrap({ PATH: `${delimiter}${delimiter}` })).toBeUndefined();
  });

  it.each([
    ['bubblewrap 0.8.0', '0.8.0'],
    ['bubblewrap 0.11', '0.11'],
    ['something else', 'of an unknown version'],
  ])('that says "%s" has the version %s', async (said, version) => {
    expect(await bubblewrapVersion(script(temporaryFolder(), 'bwrap', `echo "${said}"`))).toBe(version);
  });

  it('that cannot be run has no version', async () => {
    expect(await bubblewrapVersion(script(temporaryFolder(), 'bwrap', 'exit 1'))).toBeUndefined();
    expect(await bubblewrapVersion('/no/such/bwrap')).toBeUndefined();
  });
});

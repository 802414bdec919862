import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { bash } from '../../../src/interpreters/process/bash.ts';
import { isMissing, type Options, openSession } from './run-plan.ts';

const skip = await isMissing(bash);
const strict: Options = { strict: true };

describe.skipIf(skip)('a bash program', () => {
  it('runs in the workspace, with nothing to read', async () => {
    const { run, workspace } = openSession(bash);
    expect(await run('pwd; cat; read x || echo end')).toMatchObject({ exitCode: 0, stdout: `${workspace}\nend\n` });
  });

  it('gets its arguments unharmed', async () => {
    const args = ['', 'two words', '-n', '--', '"', "'", '$HOME', '*', 'a\nb', 'é'];
    const { stdout } = await openSession(bash).run(`printf '[%s]' "$#" "$@"`, { args });
    expect(stdout).toBe(['10', ...args].map((arg) => `[${arg}]`).join(''));
  });

  it('names its own lines in errors, strict or not', async () => {
    const { run } = openSession(bash);
    for (const options of [{}, strict]) {
      const { stderr, exitCode } = await run('echo a\n\nnosuchcommand', options);
      expect(stderr).toMatch(/main\.sh: line 3: nosuchcommand: command not found/);
      expect(exitCode).toBe(127);
    }
  });

  it('goes on after a failing command, unless it is strict', async () => {
    const { run } = openSession(bash);
    expect(await run('false; echo on')).toMatchObject({ stdout: 'on\n', exitCode: 0 });
    expect(await run('false; echo on', strict)).toMatchObject({ stdout: '', exitCode: 1 });
    expect(await run('false | true; echo on', strict)).toMatchObject({ stdout: '', exitCode: 1 });
    expect((await run('echo $nosuch', strict)).stderr).toContain('line 1: nosuch: unbound variable');
  });

  it('may be larger than what a command line holds', async () => {
    const body = 'x'.repeat(20 * 1024 ** 2);
    const { stdout } = await openSession(bash).run(`wc -c <<'END'\n${body}\nEND`);
    expect(stdout.trim()).toBe(String(body.length + 1));
  });

  it('leaves nothing in the workspace', async () => {
    const { run } = openSession(bash);
    expect((await run('ls -A')).stdout).toBe('');
    expect((await run('ls -A', { stateful: true })).stdout).toBe('');
  });

  it('has no environment that a plan added', async () => {
    const { run } = openSession(bash);
    const names = "env | sed 's/=.*//' | sort | tr '\\n' ' '";
    expect((await run(names, { stateful: true })).stdout).toBe((await run(names)).stdout);
  });
});

describe.skipIf(skip)('the state of a bash session', () => {
  const open = () => {
    const session = openSession(bash);
    return { ...session, run: (code: string, options?: Options) => session.run(code, { stateful: true, ...options }) };
  };

  it('has variables of every kind', async () => {
    const { run } = open();
    await run(`text=$'it\\'s "two"\\nlines \\\\ $x \`y\` é'
      list=(1 "2 3" [7]=seven)
      declare -A map=([a key]='a value' [b]=)
      declare -i number=4
      declare -u loud=loud
      export shared=yes
      readonly fixed=5
      declare -n alias_of=text
      empty=`);
    const { stdout, stderr } = await run(`
      printf '%s\\n' "$text" "\${list[7]}" "\${list[1]}" "\${map[a key]}" "\${map[b]-unset}" "\${empty-unset}" "$alias_of"
      number+=1; loud=still; echo $number $loud; bash -c 'echo $shared'; fixed=6`);
    const value = 'it\'s "two"\nlines \\ $x `y` é';
    expect(stdout).toBe([value, 'seven', '2 3', 'a value', '', '', value, '5 STILL', 'yes', ''].join('\n'));
    expect(stderr).toMatch(/fixed: readonly variable/);
  });

  it('has functions, also exported ones and ones with patterns', async () => {
    const { run } = open();
    await run(`shopt -s extglob
      greet() { local who=$1; cat <<END
hello "$who"
END
      }
      kind() { case $1 in +([0-9])) echo number ;; *) echo word ;; esac; }
      shout() { echo LOUD; }; export -f shout`);
    const { stdout, stderr } = await run(`greet you; kind 12; kind ab; bash -c shout`);
    expect({ stdout, stderr }).toEqual({ stdout: 'hello "you"\nnumber\nword\nLOUD\n', stderr: '' });
  });

  it('has aliases', async () => {
    const { run } = open();
    await run(`alias greet='echo hello' quote='echo "it'\\''s"'`);
    expect((await run('greet you\nquote')).stdout).toBe("hello you\nit's\n");
  });

  it('has options of the shell', async () => {
    const { run } = open();
    await run('set -fC -o pipefail; shopt -s nullglob dotglob; shopt -u sourcepath; umask 027');
    const { stdout } = await run(
      'echo $-; shopt nullglob dotglob sourcepath | grep -c on; set -o | grep pipefail; umask',
    );
    expect(stdout).toBe('fhBC\n2\npipefail       \ton\n0027\n');
  });

  it('has the current folder and the one before it', async () => {
    const { run, workspace } = open();
    await run('mkdir -p "a b/c" && cd "a b" && cd c');
    expect((await run('pwd; cd - >/dev/null; pwd')).stdout).toBe(`${workspace}/a b/c\n${workspace}/a b\n`);
  });

  it('starts in the workspace again if the current folder is gone', async () => {
    const { run, workspace } = open();
    await run('mkdir gone; cd gone');
    rmSync(join(workspace, 'gone'), { recursive: true });
    expect(await run('pwd')).toMatchObject({ stdout: `${workspace}\n`, stderr: '' });
  });

  it.each([
    ['exit', 'x=2; exit 3', 3],
    ['exit in a function', 'f() { x=2; exit 4; }; f', 4],
    ['exit in a trap', "x=2; trap 'exit 5' EXIT", 5],
    ['a failing command', 'set -e; x=2; false; x=3', 1],
    ['an unset variable', 'set -u; x=2; echo $nosuch; x=3', 1],
    ['exit with the code of a syntax error', 'x=2; exit 2', 2],
  ])('is kept after %s', async (_, code, exitCode) => {
    const { run } = open();
    await run('x=1');
    expect((await run(code)).exitCode).toBe(exitCode);
    expect((await run('set +eu; echo $x')).stdout).toBe('2\n');
  });

  it('is kept when a signal ends the program that can be handled, and unchanged when one cannot', async () => {
    const { run } = open();
    await run('x=1');
    expect((await run('x=2; kill -TERM $$; sleep 5')).signal).toBe('SIGTERM');
    expect((await run('echo $x')).stdout).toBe('2\n');
    expect((await run('x=3; kill -KILL $$; sleep 5')).signal).toBe('SIGKILL');
    expect((await run('echo $x')).stdout).toBe('2\n');
  });

  it('is unchanged after a syntax error', async () => {
    const { run } = open();
    await run('x=1; mkdir sub');
    const { stderr, exitCode } = await run('x=2; cd sub\necho a\nif then');
    expect(stderr).toMatch(/main\.sh: line 3: syntax error near unexpected token `then'/);
    expect(exitCode).toBe(2);
    expect((await run('echo $x; cd sub && echo there')).stdout).toBe('1\nthere\n');
  });

  it("has not a function's local variables, and the shell's own that they hid", async () => {
    const { run } = open();
    await run(`a=own list=(1 2) map=; export e=own
      inner() { local a=inner other=x; local -x e=inner; exit 0; }
      outer() { local a=outer; local -a list=(9); local -A only=([k]=v); inner; }
      outer`);
    const { stdout } = await run(`echo $a \${list[@]} $e \${other-unset} \${only[k]-unset}`);
    expect(stdout).toBe('own 1 2 own unset unset\n');
  });

  it('has what the program changed in its environment, and else the environment of the call', async () => {
    const { run } = open();
    const env = (value: string) => ({ env: { GIVEN: value, OTHER: value } });
    await run('export OTHER=mine', env('one'));
    expect((await run('echo $GIVEN $OTHER', env('two'))).stdout).toBe('two mine\n');
    await run('unset GIVEN', env('three'));
    expect((await run(`echo \${GIVEN-unset} $OTHER`, env('four'))).stdout).toBe('unset mine\n');
  });

  it("is saved beside the program's own EXIT trap, which is not carried over", async () => {
    const { run } = open();
    const first = await run(`trap 'echo "bye $?"; y=late' EXIT; trap -p EXIT; x=1; exit 3`);
    expect(first).toMatchObject({ exitCode: 3, stdout: `trap -- 'echo "bye $?"; y=late' EXIT\nbye 3\n`, stderr: '' });
    expect((await run('echo $x $y; trap -p')).stdout).toBe('1 late\n');
  });

  it('is strict from the first call on, until the program says otherwise', async () => {
    const { run } = open();
    expect(await run('echo $-; set -o | grep pipefail; false; echo no', strict)).toMatchObject({
      stdout: 'ehuB\npipefail       \ton\n',
      exitCode: 1,
    });
    expect(await run('false; echo no', strict)).toMatchObject({ stdout: '', exitCode: 1 });
    expect((await run('set +e; false; echo on', strict)).stdout).toBe('on\n');
    expect(await run('false; echo on; echo $nosuch; echo no', strict)).toMatchObject({ stdout: 'on\n', exitCode: 1 });
  });

  it('stands what programs do to the shell', async () => {
    const { run } = open();
    await run(`IFS=, PATH= x=1; set -fCx; shopt -s nocasematch nullglob failglob
      uid=lower; epochs=10 EPOCHS=20; POSIXLY_CORRECT=1
      cd() { builtin cd "$@"; echo moved; }; printf() { echo no; }; read() { echo no; }; declare() { echo no; }`);
    const { stdout, stderr } = await run(
      'set +xC; unset -f printf read declare; echo $x $uid $epochs $EPOCHS "$IFS"; cd /',
    );
    expect(stdout).toBe('1 lower 10 20 ,\nmoved\n');
    expect(stderr).not.toContain('cuvette');
  });

  it('that is damaged does not stop the next call', async () => {
    const { run, workspace } = open();
    await run('x=1');
    writeFileSync(join(workspace, '..', 'state'), 'declare -- x="unended');
    expect(await run(`echo \${x-unset}; x=2`)).toMatchObject({ stdout: 'unset\n', stderr: '', exitCode: 0 });
    expect((await run('echo $x')).stdout).toBe('2\n');
  });

  it('may be in a folder of any name', async () => {
    const { workspace } = open();
    const folder = join(workspace, 'it\'s $HOME `x` "y" \\z');
    mkdirSync(folder);
    const place = { folder, seen: folder };
    const state = { file: join(folder, 'state'), seen: join(folder, 'state') };
    const source = {
      code: 'echo hi',
      args: [],
      program: place,
      workspace: place,
      cache: folder,
      isCacheReadOnly: false,
      strict: false,
      state,
    };
    const [step] = (await bash.plan(source)).steps;
    const { spawnSync } = await import('node:child_process');
    const [command = '', ...args] = step?.argv ?? [];
    const env = { PATH: process.env.PATH, ...step?.env };
    expect(spawnSync(command, args, { env, encoding: 'utf8' })).toMatchObject({ stdout: 'hi\n', stderr: '' });
    expect(spawnSync('cat', [state.file], { encoding: 'utf8' }).stdout).toContain('shopt');
  });
});

describe.skipIf(skip)('a program in a session with state behaves as in one without', () => {
  it.each([
    `echo "$0 $# $* $- $LINENO \${BASH_SOURCE[*]} \${#FUNCNAME[@]}"; return 3; echo on; declare -p SHELLOPTS BASHOPTS`,
    "trap 'echo \"err $? $LINENO $BASH_COMMAND\"' ERR\nfalse\n(exit 4)\ntrap - ERR\nfalse\ntrap 'echo two' ERR\nfalse\ntrap",
    "f() { trap 'echo ret' RETURN; echo in; }; f; g() { echo g; }; g; trap 'echo b' RETURN; f; trap - RETURN; f",
    "trap 'echo d $BASH_COMMAND' DEBUG\necho a\ntrap - DEBUG\necho b\ntrap 'echo e' DEBUG\nx=1\ntrap -p",
    "trap 'echo bye $? $LINENO; exit 9' EXIT; exit 3",
    "set -e; trap 'echo bye $?; false; echo no' EXIT; false",
    "trap 'echo a\necho b # c' 0; trap; trap '' EXIT; trap -p",
    "trap 'echo x' EXIT INT; trap -p INT EXIT; kill -INT $$; echo after; trap - INT EXIT; trap -p",
    "( trap 'echo sub' EXIT; echo in ); old=$(trap -p EXIT); echo \"[$old]\"; trap 'echo it'\\''s' EXIT; echo $(trap -p EXIT)",
    'source /dev/stdin <<< \'trap "echo from source" EXIT; y=5\'; echo $y',
    "set -x\nf() { echo $1; }\ntrap 'f bye' EXIT\nfor i in 1 2; do f $i; done",
    'echo a\necho "unterminated',
    'cat <<X\nfoo',
    'exit 256',
    'exit abc',
    'exec false',
    'exec >&- 2>&-; echo x',
    'kill -INT $$; sleep 5',
    'set -u; echo $y; echo no',
    `ls /nosuch | cat; echo \${PIPESTATUS[@]}; (exit 5)`,
    `caller; f() { caller 0; }; f; echo \${BASH_LINENO[@]}`,
    "shopt -s lastpipe; echo a | read x; echo $x; set -o posix; trap 'echo bye' EXIT",
    'set -e; f() { false; echo no; }; f || echo yes; g() { return 4; }; g; echo no',
    `coproc cat; echo hi >&\${COPROC[1]}; read l <&\${COPROC[0]}; echo $l`,
  ])('%s', async (code) => {
    for (const isStrict of [false, true]) {
      const session = openSession(bash);
      const outcomes = [];
      for (const stateful of [false, true]) {
        const { exitCode, signal, stdout, stderr } = await session.run(code, {
          stateful,
          strict: isStrict,
          args: ['a b', ''],
        });
        const [out, err] = [stdout, stderr].map((text) => text.replaceAll(/\/program-\w+/g, ''));
        outcomes.push({ exitCode, signal, out, err });
      }
      expect(outcomes[1]).toEqual(outcomes[0]);
    }
  });
});

/** Runs code that leaves something for others to run (in the environment, caches, builds, its home or through tools), and checks that nobody runs it. */

import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterEach, describe, expect, onTestFinished, test } from 'vitest';
import { freshName, IN_BOTH, KEY, type Lang, useConfined } from './attack.ts';

const { service, home, caller, attack, expectNextCallWorks } = await useConfined();

/** A file that only something outside of a sandbox could make. */
const escaped = join(home.root, 'escaped');
const OWN = /^\/(mnt\/data|tmp|home\/user|dev\/shm)(\/|$)/;

afterEach(() => {
  expect(readdirSync(home.root).filter((name) => name.startsWith('escaped'))).toEqual([]);
});

/** Whether a new session, a new program and a fresh interpreter are as they were. */
async function expectUnharmed(): Promise<void> {
  const entity_id = freshName();
  const look = 'import json, os, sys, numpy; print("ok", "poisoned" in dir(__builtins__), os.environ.get("POISON"))';
  for (const lang of ['py', 'bash'] as const) {
    const code = lang === 'py' ? look : `python3 -c '${look}' && echo "$POISON$LD_PRELOAD$BASH_ENV"`;
    const { stdout, stderr } = await attack(lang, code, { entity_id });
    expect([stdout.trim(), stderr]).toEqual(['ok False None', '']);
  }
  for (const [lang, code] of [
    ['js', 'console.log("ok")'],
    ['ts', 'console.log("ok" as string)'],
    ['go', 'package main\n\nimport "fmt"\n\nfunc main() { fmt.Println("ok") }\n'],
    ['cpp', '#include <cstdio>\nint main() { puts("ok"); }'],
  ] as const) {
    const { stdout, stderr } = await attack(lang, code);
    expect([lang, stdout, stderr]).toEqual([lang, 'ok\n', '']);
  }
}

describe('the Python environment', () => {
  test.each(IN_BOTH)('cannot be written by %s, nor can its caches or the driver', async (_, where) => {
    const code = `import os, sys, json, importlib.util
tops = {sys.prefix, sys.base_prefix, os.path.dirname(sys.executable), os.path.dirname(os.path.realpath(sys.executable)), *sys.path}
for name in ("cuvette_driver", "numpy", "json", "IPython", "pip", "encodings"):
    spec = importlib.util.find_spec(name)
    if spec and spec.origin: tops.add(os.path.dirname(spec.origin))
written, seen = [], 0
for top in tops:
    if not os.path.isdir(top): continue
    for folder, folders, files in os.walk(top):
        if folder.count("/") - top.count("/") > 2: folders.clear()
        seen += 1
        for name in ("attack.pth", "sitecustomize.py"):
            path = os.path.join(folder, "attack-" + name)
            try: open(path, "x").close(); os.remove(path); written.append(folder)
            except OSError: pass
        for name in files[:20]:
            try: open(os.path.join(folder, name), "r+b").close(); written.append(os.path.join(folder, name))
            except OSError: pass
            try: os.chmod(os.path.join(folder, name), os.stat(os.path.join(folder, name)).st_mode & 0o7777); written.append(os.path.join(folder, name))
            except OSError: pass
print(json.dumps([seen, written]))`;
    const [lang, text] = where(code);
    const { stdout, stderr } = await attack(lang, text);
    const [seen, written] = JSON.parse(stdout || '[0, []]') as [number, string[]];
    expect(seen, stderr).toBeGreaterThan(20);
    expect(written.filter((path) => !OWN.test(path))).toEqual([]);
  });

  test('cannot be changed by pip, and a session that tries harms no other', async () => {
    const entity_id = freshName();
    // Nothing is removed where it could be: a shared environment that is open to writing is seen by the first line.
    const code = `S=$(python3 -c "import numpy, os; print(os.path.dirname(os.path.dirname(numpy.__file__)))")
touch "$S/attack-made" 2>/dev/null && { rm "$S/attack-made"; exit 0; }
python3 -m pip uninstall -y numpy`;
    const { run } = await attack('bash', code, { entity_id });
    expect(run.code).not.toBe(0);
    await expectUnharmed();
    await expectNextCallWorks(entity_id);
  });

  test('that is changed in memory is changed for that session alone', async () => {
    const entity_id = freshName();
    const code = `import builtins, json, os, sys, numpy
builtins.poisoned = True; json.loads = None; numpy.array = None; os.environ["POISON"] = "1"
sys.path.insert(0, "/mnt/data"); sys.meta_path.clear()
os.register_at_fork(after_in_child=lambda: os._exit(9))`;
    await attack('py', code, { entity_id });
    await expectUnharmed();
    await caller.python('import os; os._exit(1)', { entity_id });
    await expectNextCallWorks(entity_id);
  });
});

describe('the next process that is started', () => {
  test('reads nothing that a session has put into its home, its workspace or its temporary folder', async () => {
    const entity_id = freshName();
    const python = `try: open("${escaped}-python", "w")\nexcept OSError: pass\nimport builtins; builtins.poisoned = True\n`;
    const shell = `touch ${escaped}-shell; export POISON=1`;
    const code = `import os, sys, glob
version = "python%d.%d" % sys.version_info[:2]
python, shell = ${JSON.stringify(python)}, ${JSON.stringify(shell)}
home, work = os.path.expanduser("~"), "/mnt/data"
files = {
    home + "/.local/lib/" + version + "/site-packages/usercustomize.py": python,
    home + "/.local/lib/" + version + "/site-packages/sitecustomize.py": python,
    home + "/.local/lib/" + version + "/site-packages/attack.pth": "import os; exec(" + repr(python) + ")",
    home + "/.ipython/profile_default/startup/00.py": python,
    home + "/.pythonrc.py": python, home + "/.config/matplotlib/matplotlibrc": "backend: module://attack",
    home + "/.bashrc": shell, home + "/.profile": shell, home + "/.bash_profile": shell, home + "/.bash_logout": shell,
    home + "/.npmrc": "node-options=--require=/mnt/data/attack.js", home + "/.config/go/env": "GOFLAGS=-toolexec=/mnt/data/attack.sh",
    home + "/.config/pip/pip.conf": "[global]\\nindex-url = http://127.0.0.1:1/",
    work + "/package.json": '{"type": "module"}', work + "/go.mod": "nonsense", work + "/cuvette.json": '{"sandbox": "off"}',
    work + "/pyvenv.cfg": "home = /mnt/data", work + "/attack.sh": "#!/bin/sh\\n" + shell, work + "/.env": "POISON=1",
    **{work + "/" + name + ".py": python for name in ("sitecustomize", "usercustomize", "json", "socket", "os", "struct", "re", "attack")},
    work + "/cuvette_driver/__init__.py": python, work + "/cuvette_driver/worker.py": python,
    "/tmp/sitecustomize.py": python, "/tmp/json.py": python,
}
for path, text in files.items():
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file: file.write(text)
    os.chmod(path, 0o755)`;
    const { run, stderr } = await attack('py', code, { entity_id });
    expect(run.code, stderr).toBe(0);
    await expectNextCallWorks(entity_id);
    await caller.python('import os; os._exit(1)', { entity_id });
    await expectNextCallWorks(entity_id);
    await expectUnharmed();
  });

  const VARIABLES = {
    LD_PRELOAD: '/mnt/data/attack.so',
    LD_LIBRARY_PATH: '/mnt/data',
    LD_AUDIT: '/mnt/data/attack.so',
    PYTHONSTARTUP: '/mnt/data/attack.py',
    PYTHONPATH: '/mnt/data',
    PYTHONHOME: '/mnt/data',
    BASH_ENV: '/mnt/data/attack.sh',
    ENV: '/mnt/data/attack.sh',
    NODE_OPTIONS: '--require=/mnt/data/attack.js',
    GOFLAGS: '-toolexec=/mnt/data/attack.sh',
    CPATH: '/mnt/data',
    GCC_EXEC_PREFIX: '/mnt/data/',
    POISON: '1',
  };
  const prepare = `printf 'int attack = 1; __attribute__((constructor)) static void run(void) { FILE *f = fopen("${escaped}-preload", "w"); (void)f; }' | (echo '#include <stdio.h>'; cat) > a.c && gcc -shared -fPIC -o attack.so a.c
echo 'touch ${escaped}-bash; POISON=1' > attack.sh; chmod 755 attack.sh; echo 'require("node:fs").writeFileSync("${escaped}-node", "")' > attack.js
echo 'open("${escaped}-startup", "w")' > attack.py; echo 'ran' > value.h`;

  test('takes no environment variables from a shell that keeps its state', async () => {
    const entity_id = freshName();
    const exports = Object.entries(VARIABLES).map(([name, value]) => `export ${name}='${value}'`);
    const first = await attack('bash', `${prepare}\n${exports.join('\n')}`, { entity_id, stateful: true });
    expect(first.run.code, first.stderr).toBe(0);
    await attack('bash', 'true', { entity_id, stateful: true });
    await expectNextCallWorks(entity_id);
    await expectUnharmed();
  });

  test('takes no environment variables from Python code that sets its own', async () => {
    const entity_id = freshName();
    await attack('bash', prepare, { entity_id });
    await attack('py', `import os; os.environ.update(${JSON.stringify(VARIABLES)})`, { entity_id });
    await caller.python('import os; os._exit(1)', { entity_id });
    await expectNextCallWorks(entity_id);
    await expectUnharmed();
  });

  test('takes no environment variables from fields of a request', async () => {
    const entity_id = freshName();
    await attack('bash', prepare, { entity_id });
    const more = { env: VARIABLES, environment: VARIABLES, env_vars: VARIABLES, variables: VARIABLES };
    for (const lang of ['py', 'bash'] as const) {
      const code = lang === 'py' ? 'import os; print(os.environ.get("POISON"))' : 'printenv POISON || echo None';
      expect((await attack(lang, code, { entity_id, ...more })).stdout).toBe('None\n');
    }
    await expectUnharmed();
  });

  test.each<[string, Record<string, unknown>]>([
    [
      'an option of the compiler',
      {
        lang: 'cpp',
        code: '#include <cstdio>\nint main(int c, char **v) { puts(v[1]); }',
        args: ['-fplugin=/mnt/data/attack.so'],
      },
    ],
    [
      'an option of node',
      { lang: 'js', code: 'console.log(process.argv[2])', args: ['--require=/mnt/data/attack.js'] },
    ],
    ['an option of bash', { lang: 'bash', code: 'echo "$1"', args: ['--init-file'] }],
    ['an option of Python', { lang: 'py', code: 'import sys; print(sys.argv[1])', args: ['-c'] }],
  ])(
    'gets the arguments of a request as plain arguments, even if one looks like %s',
    async (_, { lang, code, args }) => {
      const { stdout } = await attack(lang as Lang, String(code), { args });
      expect(stdout).toBe(`${(args as string[])[0]}\n`);
    },
  );
});

describe('a compiled program', () => {
  const COMPILED: [Lang, (word: string) => string][] = [
    ['cpp', (word) => `#include <cstdio>\nint main() { puts("${word}"); }`],
    ['go', (word) => `package main\n\nimport "fmt"\n\nfunc main() { fmt.Println("${word}") }\n`],
  ];

  test.each(COMPILED)('in %s stays as it was built, whatever it does to itself', async (lang, source) => {
    const word = crypto.randomUUID();
    const hostile: Record<string, string> = {
      cpp: `#include <cstdio>\n#include <cstdlib>\n#include <unistd.h>\nint main() { puts("${word}"); if (getenv("HOME")) { char p[4096]; long n = readlink("/proc/self/exe", p, 4095); p[n] = 0; rename(p, "/tmp/moved"); FILE *f = fopen(p, "w"); if (f) { fputs("#!/bin/sh\\necho poisoned\\n", f); fclose(f); } } }`,
      go: `package main\n\nimport (\n\t"fmt"\n\t"os"\n)\n\nfunc main() {\n\tfmt.Println("${word}")\n\tpath, _ := os.Executable()\n\tos.Rename(path, "/tmp/moved")\n\tos.WriteFile(path, []byte("#!/bin/sh\\necho poisoned\\n"), 0o755)\n}\n`,
    };
    const code = hostile[lang] ?? source(word);
    for (let round = 0; round < 3; round += 1) expect((await attack(lang, code)).stdout).toBe(`${word}\n`);
    expect((await attack(lang, source(word))).stdout).toBe(`${word}\n`);
  });

  test('cannot be replaced, because no build cache is writable in a session', async () => {
    const look = `find / -xdev -writable \\( -type d -o -type f \\) -not -path '/proc/*' 2>/dev/null | grep -Ev '^/(mnt/data|mnt/program|tmp|home/user|dev)(/|$)'; true`;
    for (const lang of ['bash', 'py'] as const) {
      const code =
        lang === 'bash' ? look : `import subprocess; subprocess.run(["bash", "-c", ${JSON.stringify(look)}]); None`;
      expect((await attack(lang, code)).stdout).toBe('');
    }
    const go = `package main\n\nimport (\n\t"fmt"\n\t"os"\n\t"path/filepath"\n)\n\nfunc main() {\n\tfor _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH", "GOROOT"} {\n\t\tif path := os.Getenv(name); path != "" {\n\t\t\tif os.WriteFile(filepath.Join(path, "attack"), nil, 0o644) == nil {\n\t\t\t\tfmt.Println(path)\n\t\t\t}\n\t\t}\n\t}\n}\n`;
    const { stdout } = await attack('go', go);
    expect(stdout.split('\n').filter((path) => path !== '' && !OWN.test(path))).toEqual([]);
  });

  test('built from the files of one session is not run in another', async () => {
    const [one, two] = [freshName(), freshName()];
    const mark = crypto.randomUUID();
    const sources = [
      `#include <cstdio>\n#include "value.h"\nint main() { puts(VALUE); } // ${mark}`,
      `#include <cstdio>\n#if __has_include("value.h")\n#include "value.h"\n#else\n#define VALUE "none"\n#endif\nint main() { puts(VALUE); } // ${mark}`,
      `#include <cstdio>\nasm(".globl value\\nvalue: .inc" "bin \\"/mnt/data/value.txt\\"\\n.byte 0");\nextern "C" const char value[];\nint main() { puts(value); } // ${mark}`,
      `#include <cstdio>\n#define HEADER "value.h"\n#include HEADER\nint main() { puts(VALUE); } // ${mark}`,
    ];
    for (const [entity_id, word] of [
      [one, 'poisoned'],
      [two, 'own'],
    ])
      await attack('bash', `echo '#define VALUE "${word}"' > value.h; printf ${word} > value.txt`, { entity_id });
    for (const code of sources) {
      const first = await attack('cpp', code, { entity_id: one });
      expect(first.stdout, first.stderr).toBe('poisoned\n');
      expect((await attack('cpp', code, { entity_id: two })).stdout).toBe('own\n');
    }
  });

  test('built from a file that changes while it is read is not kept for others', async () => {
    const [one, two] = [freshName(), freshName()];
    const heavy = Array.from(
      { length: 60 },
      (_, n) => `#include <${['regex', 'map', 'random', 'future'][n % 4]}>`,
    ).join('\n');
    const code = `#include "value.h"\n${heavy}\n#include <iostream>\nint main() { std::regex r("a+"); std::cout << VALUE << "\\n"; } // ${crypto.randomUUID()}`;
    const text = (word: string) => `#define VALUE "${word}"\n`;
    // It is the harmless one before and after, with the same times; only the compiler sees the other.
    const swap = `import os, threading, time
def write(word):
    with open("value.h", "w") as file: file.write('#define VALUE "%s"\\n' % word)
    os.utime("value.h", ns=(10 ** 18, 10 ** 18))
write("poison")
write("benign")
def work():
    for n in range(400):
        write("poison"); time.sleep(0.01); write("benign"); time.sleep(0.005)
threading.Thread(target=work, daemon=True).start()`;
    await attack('py', swap, { entity_id: one });
    await attack('cpp', code, { entity_id: one });
    await attack('py', `open("value.h", "w").write(${JSON.stringify(text('benign'))}); None`, { entity_id: two });
    expect((await attack('cpp', code, { entity_id: two })).stdout).toBe('benign\n');
  });
});

describe('the MCP tool', () => {
  async function connect() {
    const client = new Client({ name: 'attack', version: '1' });
    const transport = new StreamableHTTPClientTransport(new URL(`${service.url}/mcp`), {
      requestInit: { headers: { 'x-api-key': KEY } },
    });
    await client.connect(transport);
    onTestFinished(() => client.close());
    return async (name: string, args: Record<string, unknown>) => {
      const result = await client.callTool(
        { name, arguments: args, _meta: { 'cuvette/structured': true } },
        { timeout: 240_000 },
      );
      const text = result.content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');
      const { session } = (result.structuredContent ?? {}) as { session?: string };
      if (session) onTestFinished(async () => void (await caller.send('DELETE', `/sessions/${session}`)));
      return { text, isError: result.isError ?? false };
    };
  }

  /** The interpreter that was added runs confined, or not at all; then it is removed. */
  async function expectConfined(call: Awaited<ReturnType<typeof connect>>, interpreter: string) {
    const { isError, text } = await call('execute', { code: 'open("/proc/self/status").read()', interpreter });
    if (!isError) expect(text).toContain('Seccomp:\\t2');
    await call('stop_interpreter', { name: interpreter, remove: true });
  }

  test.each(['/mnt/data/evil', 'evil', './evil', '/tmp/evil', '/proc/self/exe', '/bin/sh'])(
    'add_interpreter runs nothing outside the sandbox when it is given %s',
    async (python_path) => {
      const call = await connect();
      const script = `#!/bin/sh\ntouch ${escaped}-interpreter\nexec python3 "$@"\n`;
      const write = `import os\nfor path in ("/mnt/data/evil", "/tmp/evil"):\n    open(path, "w").write(${JSON.stringify(script)}); os.chmod(path, 0o755)`;
      await call('execute', { code: write });
      await call('add_interpreter', { name: 'evil', python_path, env: { LD_PRELOAD: '/mnt/data/x.so' } });
      await expectConfined(call, 'evil');
    },
  );

  test('add_interpreter runs a Python of this machine confined or not at all', async () => {
    const call = await connect();
    const outside = home.project('outside');
    writeFileSync(join(outside, 'python'), `#!/bin/sh\ntouch ${escaped}-host\nexec python3 "$@"\n`, { mode: 0o755 });
    for (const python_path of ['/usr/bin/python3', join(outside, 'python'), `${outside}/../outside/python`]) {
      const startup_script = `open("${escaped}-startup", "w")`;
      await call('add_interpreter', { name: 'host', python_path, cwd: '/', startup_script, save: true });
      await expectConfined(call, 'host');
    }
  });

  test('list_interpreters neither finds nor runs an interpreter that code has laid out', async () => {
    const call = await connect();
    const script = `#!/bin/sh\ntouch ${escaped}-discovered\nexec python3 "$@"\n`;
    const write = `import os\nfor folder in (".venv", "venv"):\n    os.makedirs(folder + "/bin", exist_ok=True)\n    open(folder + "/pyvenv.cfg", "w").write("home = /usr/bin\\n")\n    for name in ("python", "python3"):\n        path = folder + "/bin/" + name\n        open(path, "w").write(${JSON.stringify(script)}); os.chmod(path, 0o755)`;
    await call('execute', { code: write });
    await call('list_interpreters', {});
    for (const interpreter of ['.venv', 'venv']) {
      const { isError, text } = await call('execute', { code: 'open("/proc/self/status").read()', interpreter });
      if (!isError) expect(text).toContain('Seccomp:\\t2');
    }
  });

  test('export_session writes nothing outside the session', async () => {
    const call = await connect();
    const target = join(home.root, 'target');
    mkdirSync(target);
    await call('execute', {
      code: `import os\nos.path.lexists("link") or os.symlink("${target}", "link"); os.path.lexists("name.py") or os.symlink("${escaped}-link.py", "name.py")`,
    });
    for (const path of [
      `${escaped}-export.ipynb`,
      '../../../../../escaped',
      'link/escaped.ipynb',
      'name.py',
      `/mnt/data/link/escaped`,
    ])
      for (const format of ['ipynb', 'py']) await call('export_session', { path, format });
    expect(readdirSync(target)).toEqual([]);
  });
});

/** Runs code that looks for what is not its own (secrets, other sessions, processes, sockets, services nearby), and checks that it finds none of it. */

import { existsSync } from 'node:fs';
import { createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { freshName, IN_BOTH, KEY, type Lang, listenAbstract, SECRET, useConfined } from './attack.ts';

const { service, home, caller, attack, count, expectNextCallWorks } = await useConfined();

/** Where the driver is, which sessions can read. */
const REPOSITORY = resolve(import.meta.dirname, '..', '..');

/** As bytes of Python, so that the code that looks for a text does not have it. */
const hidden = (text: string) => `bytes.fromhex("${Buffer.from(text).reverse().toString('hex')}")[::-1]`;

describe('secrets of the service', () => {
  const file = `file-${crypto.randomUUID()}`;
  const variable = `variable-${crypto.randomUUID()}`;

  /** Reads all that can be read, and names the files with one of the needles in them. */
  const scan = (needles: string[]) => `import os, stat, json
needles = [${needles.map(hidden).join(', ')}]
SKIPPED = {"kmsg", "kcore", "mem", "pagemap", "clear_refs", "kpagecount", "kpageflags", "kpagecgroup", "trace_pipe"}
seen, found = 0, []
def look(path):
    global seen
    try:
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode): return
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError: return
    try: data = os.read(fd, 1 << 22)
    except OSError: return
    finally: os.close(fd)
    seen += 1
    if any(one in data or one in os.fsencode(path) for one in needles): found.append(path)
tops = ["/proc", "/tmp", "/home", "/mnt", "/run", "/var", "/etc", "/root", "/opt", "/srv", "/dev", "/sys", "${home.root}"]
for pid in filter(str.isdigit, os.listdir("/proc")):
    for way in ("root/mnt", "root/tmp", "root/home", "root/run", "root/root", "root/dev/shm", "cwd"):
        tops.append("/proc/%s/%s" % (pid, way))
    try: names = os.listdir("/proc/%s/fd" % pid)
    except OSError: names = []
    for fd in names: look("/proc/%s/fd/%s" % (pid, fd))
for top in tops:
    for folder, folders, files in os.walk(top):
        if folder.startswith("/sys/") and folder.count("/") > 5: folders.clear()
        for name in files:
            if name not in SKIPPED: look(os.path.join(folder, name))
print(json.dumps([seen, found]))`;

  test.each(IN_BOTH)('and files of other sessions are found nowhere by %s', async (_, where) => {
    const entity_id = freshName();
    const victim = await attack('py', `x = "${variable}"; open("victim.txt", "w").write("${file}"); None`, {
      entity_id,
    });
    await caller.upload('uploaded.txt', file, { entity_id });
    await caller.bash(`cp victim.txt /tmp/victim; cp victim.txt ~/victim; sleep 0.1`, { entity_id });
    const needles = [KEY, SECRET, file, variable, victim.session_id, victim.files[0]?.id ?? file];
    const [lang, code] = where(scan(needles));
    const { stdout, stderr } = await attack(lang, code, { timeout: 120_000 });
    const [seen, found] = JSON.parse(stdout || `[0, ${JSON.stringify([stderr])}]`);
    expect(found).toEqual([]);
    expect(seen).toBeGreaterThan(100);
    count(needles.length);
  });

  test.each<[Lang, string]>([
    ['py', 'import os; print(dict(os.environ))'],
    ['bash', 'env; set; cat /proc/self/environ /proc/1/environ /proc/$PPID/environ /proc/*/cmdline 2>&1'],
    ['js', 'console.log(JSON.stringify([process.env, process.argv, process.report.getReport()]))'],
    ['ts', 'console.log(JSON.stringify(process.env))'],
    ['go', 'package main\n\nimport (\n\t"fmt"\n\t"os"\n)\n\nfunc main() { fmt.Println(os.Environ()) }\n'],
    ['cpp', '#include <cstdio>\nextern char **environ;\nint main() { for (char **e = environ; *e; e++) puts(*e); }'],
  ])('are not in the environment variables of %s code', async (lang, code) => {
    const { stdout, stderr } = await attack(lang, code);
    expect(stdout).toContain('PATH');
    for (const secret of [KEY, SECRET, 'CUVETTE_API_KEY', 'OPERATOR_TOKEN', home.root])
      expect(stdout + stderr).not.toContain(secret);
  });

  test('cannot be read from the memory of other processes in the sandbox', async () => {
    const code = `import os
found = []
for pid in filter(str.isdigit, os.listdir("/proc")):
    if pid == str(os.getpid()): continue
    try: open("/proc/%s/mem" % pid, "rb").close(); found.append(pid)
    except OSError: pass
    try: open("/proc/%s/environ" % pid, "rb").read(); found.append(pid) if pid == "1" else None
    except OSError: pass
print(found)`;
    const { stdout } = await attack('py', code);
    expect(stdout).toBe('[]\n');
  });

  test.each(['/home', '/mnt', '/run', '/var', '/srv', '/media', '/boot', '/opt', '/lost+found', '/cuvette'])(
    'are not in %s, which holds only what belongs to the session',
    async (folder) => {
      const { stdout } = await attack('bash', `find ${folder} -mindepth 1 -maxdepth 1 -printf '%f ' 2>/dev/null; true`);
      const own: Record<string, string> = { '/home': 'user', '/mnt': 'data program programs', '/var': 'tmp' };
      const names = stdout
        .trim()
        .split(' ')
        .filter((name) => name && !REPOSITORY.startsWith(join(folder, name)));
      expect(names.sort().join(' ')).toBe(own[folder] ?? '');
    },
  );

  test('are not in /root, which holds only what Python and Cuvette need', async () => {
    const code = `import os, sys
tools = {os.path.realpath(path) for path in (sys.prefix, sys.base_prefix, ${JSON.stringify(REPOSITORY)})}
print([os.path.join(folder, name) for folder, _, names in os.walk("/root") for name in names if not any(folder.startswith(tool) for tool in tools)])`;
    expect((await attack('py', code)).stdout).toBe('[]\n');
  });

  test('have no path inside a session, whether sockets, database, files or sessions', async () => {
    const paths = [home.root, home.runtime, home.data, `${home.data}/cuvette.db`, `${home.data}/files`];
    const list = paths.map((path) => JSON.stringify(path)).join(' ');
    const { stdout } = await attack(
      'bash',
      `ls -d ${list} 2>/dev/null; find / -xdev \\( -name "cuvette.db*" -o -name "files.db*" -o -type s \\) 2>/dev/null; true`,
    );
    expect(stdout).toBe('');
    expect(existsSync(home.data), 'they are there').toBe(true);
    count(paths.length);
  });
});

describe('other processes', () => {
  test.each(IN_BOTH)('outside the sandbox cannot be seen by %s', async (_, where) => {
    const code = `import os
for pid in filter(str.isdigit, os.listdir("/proc")):
    try: print(pid, open("/proc/%s/comm" % pid).read().strip(), open("/proc/%s/cmdline" % pid).read())
    except OSError: pass`;
    const [lang, text] = where(code);
    const { stdout } = await attack(lang, text);
    const lines = stdout.trim().split('\n');
    expect(lines.length).toBeLessThan(8);
    expect(stdout).toMatch(/^1 cuvette-keeper/m);
    expect(stdout).not.toMatch(/main\.js|serve|bwrap|zygote/);
  });

  test.each(IN_BOTH)('inside the sandbox cannot be traced, read or robbed of descriptors by %s', async (_, where) => {
    const code = `import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
class Part(ctypes.Structure): _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]
taken = []
buffer = ctypes.create_string_buffer(64)
for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
    if pid == os.getpid(): continue
    for request in (16, 0x4206):
        if libc.ptrace(request, pid, 0, 0) == 0: taken.append(("ptrace", pid))
    local, remote = Part(ctypes.addressof(buffer), 64), Part(ctypes.addressof(buffer), 64)
    for number in (310, 311):
        if libc.syscall(number, pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0) > 0: taken.append((number, pid))
    pidfd = libc.syscall(434, pid, 0)
    for fd in range(16):
        if pidfd >= 0 and libc.syscall(438, pidfd, fd, 0) >= 0: taken.append(("pidfd_getfd", pid, fd))
    for name in ("root", "cwd", "exe", "fd", "fdinfo", "map_files", "ns/mnt", "ns/pid", "ns/user", "ns/net"):
        try: taken.append((name, pid, os.listdir("/proc/%d/%s" % (pid, name)) if "/" not in name else os.readlink("/proc/%d/%s" % (pid, name))))
        except OSError: pass
print([one for one in taken if one[1] == 1])`;
    const [lang, text] = where(code);
    const { stdout, stderr } = await attack(lang, text);
    expect(stdout, stderr).toBe('[]\n');
    count(17);
  });

  test.each(IN_BOTH)('have left %s no open descriptors except harmless ones', async (_, where) => {
    const code = `import os
for fd in os.listdir("/proc/self/fd"):
    try: print(os.readlink("/proc/self/fd/" + fd))
    except OSError: pass`;
    const [lang, text] = where(code);
    const { stdout } = await attack(lang, text);
    const harmless = /^(pipe:|socket:|anon_inode:|\/dev\/(null|urandom)$|\/proc\/\d+\/fd$|\/tmp\/probe\.py$)/;
    const links = stdout.trim().split('\n');
    expect(links.length).toBeGreaterThan(2);
    expect(links.filter((link) => !harmless.test(link))).toEqual([]);
  });

  test('of the machine cannot be signalled by their process ids', async () => {
    const code = `import os
reached = []
for pid in (${service.pid}, ${process.pid}, ${process.ppid}):
    try: os.kill(pid, 0); reached.append(pid)
    except ProcessLookupError: pass
    except PermissionError: reached.append(pid)
print(reached)`;
    const { stdout } = await attack('py', code);
    // A number as small as that of a session's own process proves nothing.
    expect(JSON.parse(stdout).filter((pid: number) => pid > 100)).toEqual([]);
  });

  test('are not slowed down by priorities, schedulers or locked memory', async () => {
    const code = `import ctypes, os
libc = ctypes.CDLL(None)
def raised(do):
    try: do(); return True
    except OSError: return False
print([raised(lambda: os.nice(-5)), raised(lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))), raised(lambda: os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))), libc.mlockall(3) == 0 and libc.munlockall() == 0 and False])`;
    const { stdout } = await attack('py', code);
    expect(stdout).toBe('[False, False, False, False]\n');
  });
});

describe('a resource that the users of a machine share', () => {
  /** Python that takes as many as it can get, and keeps them. */
  const take = (one: string) => `import ctypes, os, pty, signal
libc = ctypes.CDLL(None, use_errno=True)
kept = []
def one():
    ${one}
try:
    while len(kept) < 200_000: kept.append(one())
except (OSError, RuntimeError): pass
print(len(kept))`;
  const checked = (call: string) => `result = ${call}\n    if result < 0: raise OSError()\n    return result`;

  test.each([
    ['inotify instances', checked('libc.inotify_init()')],
    ['pseudo-terminals', 'return pty.openpty()'],
    ['message queues', checked('libc.mq_open(b"/q%d" % len(kept), 0o102, 0o600, None)')],
    ['timers', checked('libc.timer_create(0, None, ctypes.byref(ctypes.c_void_p()))')],
    ['locked memory', checked('libc.mlock(ctypes.create_string_buffer(1 << 16), 1 << 16)')],
    [
      'queued signals',
      `signal.pthread_sigmask(signal.SIG_BLOCK, {40}); ${checked('libc.sigqueue(os.getpid(), 40, None)')}`,
    ],
  ])('is not used up by one session (%s)', async (_, one) => {
    const [entity_id, other] = [freshName(), freshName()];
    const alone = Number((await attack('py', take(one).replace('200_000', '20'), { entity_id: other })).stdout);
    await caller.python('import os; os._exit(0)', { entity_id: other });
    await attack('py', take(one), { entity_id });
    const beside = Number((await attack('py', take(one).replace('200_000', '20'), { entity_id: other })).stdout);
    expect(beside).toBe(alone);
    await caller.python('import os; os._exit(0)', { entity_id });
    await expectNextCallWorks(entity_id);
  });
});

describe('the network of a session', () => {
  const port = Number(new URL(service.url).port);
  const addresses = Object.values(networkInterfaces())
    .flatMap((all) => all ?? [])
    .filter(({ address }) => !address.startsWith('fe80'))
    .map(({ address }) => address);
  const places = [...new Set(['127.0.0.1', '::1', '0.0.0.0', 'localhost', '127.0.0.2', ...addresses])];

  /** Python that tells the places that it could connect to. */
  const reach = (hosts: string[], to: number) => `import socket
reached = []
for host in ${JSON.stringify(hosts)}:
    try: socket.create_connection((host, ${to}), 2).close(); reached.append(host)
    except OSError: pass
print(reached)`;

  test.each(IN_BOTH)('does not lead from %s to the service itself', async (_, where) => {
    const [lang, code] = where(reach(places, port));
    expect((await attack(lang, code)).stdout).toBe('[]\n');
    count(places.length - 1);
  });

  test('does not lead to other services of this machine or to cloud metadata services', async () => {
    const server = createServer((socket) => socket.end('reached'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const address = server.address();
    const other = typeof address === 'object' ? (address?.port ?? 0) : 0;
    expect((await attack('py', reach(places, other))).stdout).toBe('[]\n');
    const cloud = ['169.254.169.254', 'fd00:ec2::254', '100.100.100.200', 'metadata.google.internal', '1.1.1.1'];
    expect((await attack('py', reach(cloud, 80))).stdout).toBe('[]\n');
    const { stdout } = await attack('bash', 'exec 3<>/dev/tcp/169.254.169.254/80 && echo reached; true');
    expect(stdout).toBe('');
  });

  test('sends no datagrams and resolves no names', async () => {
    const code = `import socket
sent = []
for family, host in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET, "8.8.8.8"), (socket.AF_INET6, "2001:4860:4860::8888")):
    try: socket.socket(family, socket.SOCK_DGRAM).sendto(b"x", (host, 53)); sent.append(host)
    except OSError: pass
try: sent.append(socket.getaddrinfo("example.com", 80))
except OSError: pass
print(sent, sorted(name for _, name in socket.if_nameindex()))`;
    expect((await attack('py', code)).stdout).toBe("[] ['lo']\n");
  });

  test('does not reach the abstract sockets of this machine', async () => {
    const name = await listenAbstract();
    const code = `import socket
one = socket.socket(socket.AF_UNIX)
try: one.connect("\\0${name}"); print("reached")
except OSError as error: print(type(error).__name__)
print("${name}" in open("/proc/net/unix").read())`;
    expect((await attack('py', code)).stdout).toBe('ConnectionRefusedError\nFalse\n');
  });

  test('is its own, so that what listens in one session cannot be reached from another', async () => {
    const entity_id = freshName();
    const listen = `import socket; s = socket.create_server(("127.0.0.1", 4711)); t = socket.socket(socket.AF_UNIX); t.bind("\\0attack"); t.listen()`;
    await attack('py', listen, { entity_id });
    expect((await attack('py', reach(['127.0.0.1', '::1'], 4711))).stdout).toBe('[]\n');
    expect((await caller.python(reach(['127.0.0.1'], 4711), { entity_id })).stdout).toBe("['127.0.0.1']\n");
    await expectNextCallWorks(entity_id);
  });
});

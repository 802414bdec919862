/** Runs code that asks the kernel for more than it has (privileges, namespaces, mounts, devices, unusual sockets), and checks that each request is denied. */

import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { describe, expect, test } from 'vitest';
import { freshName, IN_BOTH, type Lang, useConfined } from './attack.ts';

const { attack, count, expectNextCallWorks } = await useConfined({ env: { CUVETTE_SESSION_CPUS: '1' } });

const STATUS = /^Uid:\t1000\t1000\t1000\t1000$/m;

describe('a process in a session', () => {
  const files = '/proc/self/status';
  test.each<[Lang, string]>([
    ['py', `print(open("${files}").read())`],
    ['bash', `cat ${files}`],
    ['js', `console.log(require("node:fs").readFileSync("${files}", "utf8"))`],
    ['ts', `import { readFileSync } from 'node:fs'; console.log(readFileSync("${files}", "utf8") as string)`],
    [
      'go',
      `package main\n\nimport (\n\t"fmt"\n\t"os"\n)\n\nfunc main() {\n\ttext, _ := os.ReadFile("${files}")\n\tfmt.Println(string(text))\n}\n`,
    ],
    ['cpp', `#include <fstream>\n#include <iostream>\nint main() { std::cout << std::ifstream("${files}").rdbuf(); }`],
  ])('that runs %s code has no privileges and is behind a seccomp filter', async (lang, code) => {
    const { stdout, stderr } = await attack(lang, code);
    expect(stdout, stderr).toMatch(STATUS);
    expect(stdout).toMatch(/^Gid:\t1000\t1000\t1000\t1000$/m);
    expect(stdout).toMatch(/^Groups:\s*(1000|65534)?\s*$/m);
    for (const kind of ['Inh', 'Prm', 'Eff', 'Bnd', 'Amb'])
      expect(stdout).toMatch(new RegExp(`^Cap${kind}:\t0{16}$`, 'm'));
    expect(stdout).toMatch(/^NoNewPrivs:\t1$/m);
    expect(stdout).toMatch(/^Seccomp:\t2$/m);
    count(7);
  });
});

describe.runIf(process.arch === 'x64')('dangerous system calls', () => {
  /** Each runs in a child, and tells by its status: 0 for done, else the error. A signal is a denial too. */
  const PROBES = `import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *args):
    def do():
        result = libc.syscall(number, *[a if not isinstance(a, int) else ctypes.c_long(a) for a in args])
        return 0 if result >= 0 else ctypes.get_errno()
    return do
def opened(path, flags=os.O_RDWR):
    def do():
        try: os.close(os.open(path, flags)); return 0
        except OSError as error: return error.errno
    return do
def made(family, kind, protocol=0):
    import socket
    def do():
        try: socket.socket(family, kind, protocol); return 0
        except OSError as error: return error.errno
    return do
page = ctypes.create_string_buffer(4096)
attr = ctypes.create_string_buffer(struct.pack("IIII", 1, 4, 4, 1) + bytes(112))
perf = ctypes.create_string_buffer(struct.pack("IIQ", 1, 112, 0) + bytes(96))
header = ctypes.create_string_buffer(struct.pack("Ii", 0x20080522, 0))
caps = ctypes.create_string_buffer(struct.pack("IIIIII", 0xffffffff, 0xffffffff, 0, 0xff, 0xff, 0))
NEW = {"mnt": 0x20000, "cgroup": 0x2000000, "uts": 0x4000000, "ipc": 0x8000000, "user": 0x10000000, "pid": 0x20000000, "net": 0x40000000, "time": 0x80}
probes = {
    "mount": call(165, b"none", b"/tmp", b"tmpfs", 0, 0),
    "bind mount": call(165, b"/", b"/tmp", 0, 4096, 0),
    "remount": call(165, b"none", b"/", 0, 32 | 4096, 0),
    "umount2": call(166, b"/mnt/data", 2),
    "umount2 of proc": call(166, b"/proc", 2),
    "pivot_root": call(155, b"/mnt/data", b"/mnt/data"),
    "chroot": call(161, b"/mnt/data"),
    "fsopen": call(430, b"tmpfs", 0),
    "open_tree": call(428, -100, b"/", 1),
    "move_mount": call(429, -100, b"/tmp", -100, b"/mnt/data", 0),
    "mount_setattr": call(442, -100, b"/", 0, page, 32),
    "mknod of a device": call(133, b"/tmp/device", 0o20666, 259),
    "mknod of a disk": call(133, b"/tmp/disk", 0o60666, 0xfe00),
    "clone3": call(435, ctypes.create_string_buffer(struct.pack("Q", NEW["user"]) + bytes(24) + struct.pack("Q", 17) + bytes(48)), 88),
    "clone with a user namespace": call(56, NEW["user"] | 17, 0, 0, 0, 0),
    "setuid": call(105, 0), "setgid": call(106, 0), "setreuid": call(113, 0, 0), "setresuid": call(117, 0, 0, 0), "setresgid": call(119, 0, 0, 0),
    "setgroups": call(116, 1, page),
    "capset": call(126, header, caps),
    "keyctl": call(250, 0, -3, 0), "add_key": call(248, b"user", b"attack", b"x", 1, -3), "request_key": call(249, b"user", b"attack", 0, -3),
    "bpf": call(321, 0, attr, 120),
    "perf_event_open": call(298, perf, 0, -1, -1, 0),
    "io_uring_setup": call(425, 1, page),
    "userfaultfd": call(323, 1),
    "init_module": call(175, page, 4096, b""), "finit_module": call(313, 0, b"", 0), "delete_module": call(176, b"attack", 2048),
    "kexec_load": call(246, 0, 0, 0, 0), "reboot": call(169, 0xfee1dead, 672274793, 0, 0),
    "swapon": call(167, b"/mnt/data/swap", 0), "acct": call(163, b"/mnt/data/acct"),
    "sethostname": call(170, b"attacked", 8), "setdomainname": call(171, b"attacked", 8),
    "clock_settime": call(227, 0, ctypes.create_string_buffer(struct.pack("qq", 1, 0))), "settimeofday": call(164, ctypes.create_string_buffer(struct.pack("qq", 1, 0)), 0),
    "iopl": call(172, 3), "ioperm": call(173, 0x80, 1, 1),
    "quotactl": call(179, 0x800002 << 8, b"/dev/vda", 0, page),
    "open_by_handle_at": call(304, -100, page, 0), "fanotify_init": call(300, 0, 0), "syslog": call(103, 3, page, 4096),
    "kcmp": call(312, 1, 1, 0, 0, 0), "lookup_dcookie": call(212, 1, page, 4096), "vhangup": call(153),
    "ptrace of the keeper": call(101, 16, 1, 0, 0),
    "AF_PACKET": made(17, 3, 0x300), "AF_VSOCK": made(40, 1), "AF_ALG": made(38, 5), "raw": made(2, 3, 1), "raw IPv6": made(10, 3, 58), "AF_BLUETOOTH": made(31, 3, 0), "AF_CAN": made(29, 3, 1), "AF_XDP": made(44, 3, 0),
    "AF_TIPC": made(30, 1), "AF_RDS": made(21, 5), "netfilter": made(16, 3, 12), "uevents": made(16, 3, 15), "audit": made(16, 3, 9),
}
for name, flag in NEW.items():
    probes["unshare " + name] = call(272, flag)
    def enter(name=name, flag=flag):
        fd = os.open("/proc/self/ns/" + name, os.O_RDONLY)
        return call(308, fd, flag)()
    probes["setns " + name] = enter
for path in ("/dev/mem", "/dev/kmem", "/dev/kmsg", "/dev/port", "/dev/kvm", "/dev/fuse", "/dev/vda", "/dev/sda", "/dev/loop-control", "/dev/net/tun", "/dev/vhost-vsock", "/dev/vsock",
             "/proc/kcore", "/proc/kmsg", "/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sys/kernel/modprobe", "/proc/sys/vm/overcommit_memory",
             "/proc/sys/net/ipv4/ip_forward", "/proc/sys/user/max_user_namespaces", "/proc/1/oom_score_adj", "/proc/1/mem", "/proc/1/uid_map",
             "/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/cgroup.procs", "/sys/kernel/uevent_helper", "/sys/power/state", "/sys/module/kernel/parameters/crash_kexec_post_notifiers",
             "/etc/passwd", "/etc/hosts", "/etc/ld.so.preload", "/usr/bin/env", "/bin/sh", "/usr/lib/os-release"):
    probes["write to " + path] = opened(path)
for path in ("/", "/usr", "/usr/bin", "/usr/local", "/etc", "/bin", "/lib", "/mnt", "/home", "/dev", "/proc", "/sys", "/root", "/var"):
    probes["new file in " + path] = opened(os.path.join(path, "attack-made"), os.O_CREAT | os.O_WRONLY)
def push():
    import fcntl, pty
    _, slave = pty.openpty()
    try: fcntl.ioctl(slave, 0x5412, b"x"); return 0
    except OSError as error: return error.errno
probes["TIOCSTI"] = push
def told(path, text):
    def do():
        try: os.write(os.open(path, os.O_WRONLY), text); return 0
        except OSError as error: return error.errno
    return do
probes["oom_score_adj"] = told("/proc/self/oom_score_adj", b"-1000")
for name, text in (("uid_map", b"0 0 1"), ("gid_map", b"0 0 1"), ("setgroups", b"allow")): probes[name] = told("/proc/self/" + name, text)
wanted = sys.argv[1:] or list(probes)
for name in wanted:
    pid = os.fork()
    if pid == 0:
        try: status = min(probes[name](), 254)
        except BaseException: status = 255
        os._exit(status)
    _, status = os.waitpid(pid, 0)
    print(name, os.WEXITSTATUS(status) if os.WIFEXITED(status) else "signal", sep="\\t")`;

  test.each(IN_BOTH)('from %s are all denied', async (_, where) => {
    const entity_id = freshName();
    const [lang, code] = where(PROBES);
    const { stdout, stderr } = await attack(lang, code, { entity_id });
    const results = stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.split('\t'));
    expect(results.length, stderr).toBeGreaterThan(120);
    expect(
      results.filter(([, status]) => status === '0' || status === '255'),
      'what was allowed',
    ).toEqual([]);
    count(results.length - 1);
    await expectNextCallWorks(entity_id);
  });

  test('are denied by the seccomp filter, not because of their arguments', async () => {
    const filtered = [
      'keyctl',
      'bpf',
      'io_uring_setup',
      'userfaultfd',
      'perf_event_open',
      'unshare user',
      'AF_VSOCK',
      'AF_ALG',
    ];
    const { stdout } = await attack('py', PROBES, { args: filtered });
    const statuses = stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.split('\t')[1]);
    expect(statuses).toHaveLength(filtered.length);
    // Not permitted, not there, or no such family: never a complaint about the arguments.
    for (const [index, status] of statuses.entries())
      expect([filtered[index], ['1', '13', '38', '97', 'signal'].includes(status ?? '')]).toEqual([
        filtered[index],
        true,
      ]);
  });

  test.each([
    ['32-bit keyctl', 'int $0x80', '"a"(288L), "b"(0L), "c"(-3L), "d"(0L)'],
    ['32-bit unshare', 'int $0x80', '"a"(310L), "b"(0x10000000L), "c"(0L), "d"(0L)'],
    ['x32 keyctl', 'syscall', '"a"(250L | 0x40000000L), "D"(0L), "S"(-3L), "d"(0L)'],
    ['x32 unshare', 'syscall', '"a"(272L | 0x40000000L), "D"(0x10000000L), "S"(0L), "d"(0L)'],
  ])('called as %s are denied too', async (_, instruction, inputs) => {
    const code = `#include <cstdio>\nint main() { long result; asm volatile("${instruction}" : "=a"(result) : ${inputs} : "r8", "r9", "r10", "r11", "memory"); std::printf("%d", (int)result); }`;
    const { stdout, stderr, run } = await attack('cpp', code);
    expect(run.signal !== null || Number(stdout) < 0, stdout + stderr).toBe(true);
  });
});

describe('the keeper process', () => {
  /** Everything that the kernel lets one process do to another of the same user; what has an effect is printed. */
  const AGAINST = `import ctypes, fcntl, os, resource, signal, socket
libc = ctypes.CDLL(None, use_errno=True)
threads = [int(name) for name in os.listdir("/proc/1/task")]
def tried(name, do):
    try:
        if do() != -1: print("allowed:", name)
    except OSError: pass
for pid in {1, *threads, *range(2, 60)} - {os.getpid(), os.getppid()}:
    for limit in (name for name in dir(resource) if name.startswith("RLIMIT_")):
        tried("prlimit %s of %d" % (limit, pid), lambda: resource.prlimit(pid, getattr(resource, limit), (0, 0)))
for pid in {1, *threads}:
    tried("affinity", lambda: os.sched_setaffinity(pid, {min(os.sched_getaffinity(0))}))
    tried("idle", lambda: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0)))
    tried("batch", lambda: os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0)))
    tried("parameters", lambda: os.sched_setparam(pid, os.sched_param(0)))
    tried("nice", lambda: os.setpriority(os.PRIO_PROCESS, pid, 19))
    tried("nice group", lambda: os.setpriority(os.PRIO_PGRP, pid, 19))
tried("nice own group", lambda: os.setpriority(os.PRIO_PGRP, 0, 19))
tried("nice user", lambda: os.setpriority(os.PRIO_USER, 0, 19))
for path in ("oom_score_adj", "mem", "autogroup", "timerslack_ns", "comm", "coredump_filter", "clear_refs", "sched", "attr/current", "limits"):
    tried("write " + path, lambda: os.write(os.open("/proc/1/" + path, os.O_WRONLY), b"1"))
for path in ("mem", "environ", "maps", "fd/0", "cwd/x", "root/x"): tried("read " + path, lambda: os.open("/proc/1/" + path, os.O_RDONLY))
# Signals are taken from everybody of the same user; none may have an effect.
for number in set(range(1, 65)) - {32, 33}:
    try:
        os.kill(1, number)
        for thread in threads: libc.syscall({"x86_64": 234, "aarch64": 131}[os.uname().machine], 1, thread, number)
    except OSError: pass
ours, theirs = socket.socketpair()
fcntl.fcntl(ours, fcntl.F_SETOWN, 1)
fcntl.fcntl(ours, 10, signal.SIGKILL)
fcntl.fcntl(ours, fcntl.F_SETFL, os.O_ASYNC)
theirs.send(b"x")
print("done")`;

  test.each(IN_BOTH)('cannot be limited, slowed down, read or ended by %s', async (_, where) => {
    const entity_id = freshName();
    const kept = crypto.randomUUID();
    await attack('py', `kept = "${kept}"`, { entity_id });
    const [lang, code] = where(AGAINST);
    const { stdout, stderr } = await attack(lang, code, { entity_id });
    expect(stdout, stderr).toBe('done\n');
    count(100);
    const after = await attack('py', 'print(kept)', { entity_id });
    expect(after.stdout, after.stderr).toBe(`${kept}\n`);
    await expectNextCallWorks(entity_id);
  });

  test('does not prevent code from setting limits for itself', async () => {
    const code = `ulimit -n 100; ulimit -n; prlimit --pid $$ --nofile=90; ulimit -n; prlimit --nofile=80 sh -c 'ulimit -n'
nice -n 5 nice; sleep 5 & renice -n 3 -p $! >/dev/null && ps -o ni= -p $! | tr -d ' '; taskset -p 1 $! >/dev/null && echo taskset; kill $!`;
    const { stdout, stderr } = await attack('bash', code);
    expect([stdout, stderr]).toEqual(['100\n90\n80\n5\n3\ntaskset\n', '']);
    const python = await attack(
      'py',
      'import os, resource\nfor pid in (0, os.getpid()): resource.prlimit(pid, resource.RLIMIT_NOFILE, (200, 200))\nprint(os.nice(2))',
    );
    expect([python.stdout, python.stderr]).toEqual(['2\n', '']);
  });
});

describe('a privileged program', () => {
  test('with the setuid bit runs as the user of the session', async () => {
    const entity_id = freshName();
    const code = `find / -xdev -perm /6000 -type f 2>/dev/null | while read -r f; do echo "$f"; done | wc -l
cp /usr/bin/id /tmp/id; chmod 6755 /tmp/id; /tmp/id -u; /tmp/id -ru
for f in su sudo mount umount passwd newuidmap newgrp chsh; do command -v $f >/dev/null && timeout 2 $f -c id </dev/null 2>/dev/null | grep -c uid=0; done; true`;
    const { stdout } = await attack('bash', code, { entity_id });
    expect(stdout).toMatch(/^\d+\n1000\n1000\n(0\n)*$/);
    await expectNextCallWorks(entity_id);
  });

  test.each([
    'unshare -r id -u',
    'unshare -Ur true',
    'nsenter -t 1 -a id',
    'bwrap --ro-bind / / id -u',
    'mount -t tmpfs x /tmp',
    'mount -o remount,rw /',
    'mount --bind / /mnt/data',
    'chroot / id',
    'hostname attacked',
    'date -s @0',
    'dmesg',
    'sysctl -w kernel.hostname=attacked',
    'mknod /tmp/null c 1 3',
  ])('such as "%s" fails', async (command) => {
    const { run, stdout } = await attack('bash', `${command} </dev/null`);
    expect(run.code, stdout).not.toBe(0);
  });

  test('changes nothing on this machine', async () => {
    const before = [hostname(), readFileSync('/proc/sys/kernel/core_pattern', 'utf8')];
    await attack(
      'bash',
      'echo "|/mnt/data/x" > /proc/sys/kernel/core_pattern; echo attacked > /proc/sys/kernel/hostname; hostname attacked; true',
    );
    expect([hostname(), readFileSync('/proc/sys/kernel/core_pattern', 'utf8')]).toEqual(before);
    expect(Math.abs(Date.now() - performance.timeOrigin - performance.now())).toBeLessThan(60_000);
    expect((await attack('bash', 'hostname')).stdout.trim()).not.toBe(hostname());
  });
});

describe('what a session sees of the machine', () => {
  test('includes only a few harmless devices', async () => {
    const { stdout } = await attack('bash', 'find /dev -type b -o -type c | sort');
    const harmless = /^\/dev\/(null|zero|full|random|urandom|tty|ptmx|console|pts\/(ptmx|\d+))$/;
    expect(
      stdout
        .trim()
        .split('\n')
        .filter((path) => !harmless.test(path)),
    ).toEqual([]);
  });

  test.each<[Lang, string]>([
    ['bash', 'nproc'],
    ['py', 'import os; print(os.cpu_count())'],
    ['py', 'import os; print(len(os.sched_getaffinity(0)))'],
    ['py', 'import multiprocessing; print(multiprocessing.cpu_count())'],
    ['js', 'console.log(require("node:os").availableParallelism())'],
    ['go', 'package main\n\nimport "runtime"\n\nfunc main() { print(runtime.NumCPU()); println() }\n'],
    [
      'cpp',
      '#include <iostream>\n#include <thread>\nint main() { std::cout << std::thread::hardware_concurrency() << "\\n"; }',
    ],
  ])('includes only the processors that it may use, counted in %s by %s', async (lang, code) => {
    const { stdout, stderr } = await attack(lang, code);
    expect((stdout || stderr).trim()).toBe('1');
  });

  test.each<[Lang, string]>([
    ['bash', "awk '/^MemTotal/ { print $2 * 1024 }' /proc/meminfo"],
    ['py', 'print(int(open("/proc/meminfo").readline().split()[1]) * 1024)'],
    ['js', 'console.log(process.constrainedMemory?.() || require("node:os").totalmem())'],
  ])('includes only the memory that it may use, read in %s', async (lang, code) => {
    const { stdout } = await attack(lang, code);
    expect(Number(stdout)).toBeGreaterThan(0);
    expect(Number(stdout)).toBeLessThanOrEqual(512 * 2 ** 20);
  });
});

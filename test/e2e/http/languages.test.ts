/** Checks the same behaviour in all six languages, by one program each, which does what its first argument says. */

import { describe, expect, test } from 'vitest';
import { useService } from './service.ts';

const service = await useService();

const PY = `import os, sys, time
mode, *rest = sys.argv[1:]
if mode == "args":
    for one in rest: print("<%s>" % one)
if mode == "files":
    os.makedirs("out", exist_ok=True)
    text = open("/mnt/data/in.txt").read()
    with open("/mnt/data/out/py.txt", "w") as file: file.write(text + "py")
    print(os.getcwd())
if mode == "exit":
    print("bye", file=sys.stderr)
    sys.exit(3)
if mode == "crash": os.abort()
if mode == "work":
    x = bytearray(b"1" * (150 << 20))
    until = time.process_time() + 0.3
    while time.process_time() < until: pass
    time.sleep(0.2)
while mode == "forever": pass
`;

const BASH = `mode=$1; shift
case $mode in
  args) printf '<%s>\\n' "$@" ;;
  stdin) cat; printf '|end' ;;
  files) mkdir -p out; { cat /mnt/data/in.txt; printf bash; } > /mnt/data/out/bash.txt; pwd ;;
  exit) echo bye >&2; exit 3 ;;
  crash) kill -ABRT $$ ;;
  work) python3 -c 'import time
x = bytearray(b"1" * (150 << 20))
until = time.process_time() + 0.3
while time.process_time() < until: pass'; sleep 0.2 ;;
  forever) while :; do :; done ;;
esac
`;

const JS = `const fs = require('node:fs');
const [mode, ...rest] = process.argv.slice(2);
if (mode === 'args') for (const one of rest) console.log('<' + one + '>');
if (mode === 'stdin') process.stdout.write(fs.readFileSync(0, 'utf8') + '|end');
if (mode === 'files') {
  fs.mkdirSync('out', { recursive: true });
  fs.writeFileSync('/mnt/data/out/js.txt', fs.readFileSync('/mnt/data/in.txt', 'utf8') + 'js');
  console.log(process.cwd());
}
if (mode === 'exit') { console.error('bye'); process.exit(3); }
if (mode === 'crash') process.abort();
if (mode === 'work') {
  globalThis.kept = Buffer.alloc(150 << 20, 1);
  for (let used = 0; used < 300_000; ) {
    const { user, system } = process.cpuUsage();
    used = user + system;
  }
  setTimeout(() => {}, 200);
}
while (mode === 'forever') {}
`;

const TS = `import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
enum Mode { args = 'args', stdin = 'stdin', files = 'files', exit = 'exit', crash = 'crash', work = 'work', forever = 'forever' }
const [mode, ...rest] = process.argv.slice(2) as [Mode, ...string[]];
const brackets = <T,>(one: T): string => \`<\${one}>\`;
if (mode === Mode.args) for (const one of rest) console.log(brackets<string>(one));
if (mode === Mode.stdin) process.stdout.write(readFileSync(0, 'utf8') + '|end');
if (mode === Mode.files) {
  mkdirSync('out', { recursive: true });
  writeFileSync('/mnt/data/out/ts.txt', readFileSync('/mnt/data/in.txt', 'utf8') + 'ts');
  console.log(process.cwd());
}
if (mode === Mode.exit) { console.error('bye'); process.exit(3); }
if (mode === Mode.crash) process.abort();
if (mode === Mode.work) {
  (globalThis as { kept?: Buffer }).kept = Buffer.alloc(150 << 20, 1);
  for (let used: number = 0; used < 300_000; ) {
    const { user, system }: NodeJS.CpuUsage = process.cpuUsage();
    used = user + system;
  }
  await new Promise<void>((resolve) => setTimeout(resolve, 200));
}
while (mode === Mode.forever) {}
`;

const GO = `package main

import (
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

func main() {
	switch os.Args[1] {
	case "args":
		for _, one := range os.Args[2:] {
			fmt.Printf("<%s>\\n", one)
		}
	case "stdin":
		text, _ := io.ReadAll(os.Stdin)
		fmt.Printf("%s|end", text)
	case "files":
		os.MkdirAll("out", 0o755)
		text, _ := os.ReadFile("/mnt/data/in.txt")
		os.WriteFile("/mnt/data/out/go.txt", append(text, "go"...), 0o644)
		folder, _ := os.Getwd()
		fmt.Println(folder)
	case "exit":
		fmt.Fprintln(os.Stderr, "bye")
		os.Exit(3)
	case "crash":
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		time.Sleep(time.Minute)
	case "work":
		kept := make([]byte, 150<<20)
		for i := range kept {
			kept[i] = 1
		}
		for used := (syscall.Rusage{}); used.Utime.Nano()+used.Stime.Nano() < 3e8; {
			syscall.Getrusage(0, &used)
		}
		time.Sleep(200 * time.Millisecond)
		os.Stdout.Write(kept[:0])
	case "forever":
		for {
		}
	}
}
`;

const CPP = `#include <unistd.h>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

std::string all(std::istream &in) { return {std::istreambuf_iterator<char>(in), {}}; }

int main(int argc, char **argv) {
  const std::string mode = argv[1];
  if (mode == "args")
    for (int i = 2; i < argc; i++) std::cout << '<' << argv[i] << ">\\n";
  if (mode == "stdin") std::cout << all(std::cin) << "|end";
  if (mode == "files") {
    std::filesystem::create_directories("out");
    std::ifstream in("/mnt/data/in.txt");
    std::ofstream("/mnt/data/out/cpp.txt") << all(in) << "cpp";
    std::cout << std::filesystem::current_path().string() << '\\n';
  }
  if (mode == "exit") {
    std::cerr << "bye\\n";
    return 3;
  }
  if (mode == "crash") std::abort();
  if (mode == "work") {
    std::vector<char> kept(150 << 20, 1);
    while (std::clock() < 0.3 * CLOCKS_PER_SEC) kept[std::clock() % kept.size()]++;
    usleep(200'000);
    return kept[0] == 0;
  }
  while (mode == "forever") pause();
}
`;

const PROGRAMS = { py: PY, bash: BASH, js: JS, ts: TS, go: GO, cpp: CPP };
type Lang = keyof typeof PROGRAMS;
const ALL: Lang[] = ['py', 'bash', 'js', 'ts', 'go', 'cpp'];
const run = (lang: Lang, mode: string, more: { args?: string[]; [field: string]: unknown } = {}) =>
  service.exec({ lang, code: PROGRAMS[lang], ...more, args: [mode, ...(more.args ?? [])] });

describe.each(ALL)('a program in %s', (lang) => {
  test('receives its arguments unharmed', async () => {
    const args = ['a b', "it's", '"q"', '$HOME `x` $(y)', '', '*', 'ünï🎉', '-n', '--', '\\n', 'two\nlines'];
    const answer = await run(lang, 'args', { args });
    expect([answer.stdout, answer.stderr]).toEqual([args.map((one) => `<${one}>\n`).join(''), '']);
    expect(answer).toMatchObject({ language: lang, version: expect.stringMatching(/\d+\.\d+/), files: [] });
  });

  test.runIf(lang !== 'py')('reads nothing from stdin unless input is given', async () => {
    expect((await run(lang, 'stdin')).stdout).toBe('|end');
    const stdin = `line 1\nline 2 ü🎉\n${'x'.repeat(200_000)}`;
    expect((await run(lang, 'stdin', { stdin })).stdout).toBe(`${stdin}|end`);
  });

  test('works in /mnt/data and leaves nothing there but what it wrote', async () => {
    const uploaded = await service.upload('in.txt', 'in ', { entity_id: `files-${lang}` });
    const answer = await run(lang, 'files', { entity_id: `files-${lang}` });
    expect([answer.stdout, answer.stderr]).toEqual(['/mnt/data\n', '']);
    expect(answer.session_id).toBe(uploaded.session_id);
    expect(answer.files).toMatchObject([{ name: `out/${lang}.txt`, path: `/mnt/data/out/${lang}.txt` }]);
    expect((await service.get(`/download/${answer.session_id}/${answer.files[0]?.id}`)).text).toBe(`in ${lang}`);
    const { stdout } = await service.bash('find . -type f | sort', { entity_id: `files-${lang}` });
    expect(stdout).toBe(`./in.txt\n./out/${lang}.txt\n`);
  });

  test('reports its exit code', async () => {
    const { run: how, stderr } = await run(lang, 'exit');
    expect(how).toMatchObject({ code: 3, signal: null });
    expect(stderr).toContain('bye\n');
  });

  test('reports the signal that ended it', async () => {
    const { run: how, stderr } = await run(lang, 'crash');
    const [signal, code] = lang === 'go' ? ['SIGKILL', 137] : ['SIGABRT', 134];
    expect(how).toMatchObject({ code, signal, status: 'SG' });
    expect(stderr).toContain(signal);
  });

  test('reports true times and memory', async () => {
    await run(lang, 'args'); // What has to be built is built.
    const { run: how } = await run(lang, 'work');
    expect(how.code).toBe(0);
    expect(how.cpu_time).toBeGreaterThanOrEqual(290);
    expect(how.wall_time).toBeGreaterThanOrEqual(450);
    expect(how.wall_time).toBeGreaterThan(how.cpu_time ?? 0);
    expect(how.memory).toBeGreaterThan(150 << 20);
    expect(how.memory).toBeLessThan(700 << 20);
  });

  test('is interrupted at its time limit', async () => {
    await run(lang, 'args');
    const { run: how, stderr } = await run(lang, 'forever', { timeout: 500 });
    expect(how).toMatchObject({ code: 124, status: 'TO' });
    expect(stderr).toMatch(/Timed out after 0\.5 s/);
  });
});

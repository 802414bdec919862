/**
 * How threads share a program, which is a list of operations: everyone takes items of the first operation until none is left, waits until
 * all of them are done, and goes on with the next. A thread that comes late, or that the system has stopped for a while, holds nobody up
 * unless it has taken an item: items carry the number of their program, and those of another are not taken.
 */

import { DONE, ITEMS, NEXT, SIZE, SLEEPERS } from './operation';
import { perform } from './perform';

/** Where threads learn of a program. The number comes last: whoever sees it sees the rest. */
const NUMBER: usize = 0;
const PROGRAM: usize = 4;
const COUNT: usize = 8;
const IDLE: usize = 12;

/** Of no program. */
const ALL_TAKEN: i64 = i64.MAX_VALUE;
const SPINS: i32 = 20_000;
const NANOSECONDS_ASLEEP: i64 = 2_000_000;

/** What the first thread calls: makes a program known, helps, and returns when all of it is done. */
export function runProgram(control: usize, program: usize, count: i32, scratch: usize): void {
  const last = load<i32>(control, NUMBER);
  const number = last == i32.MAX_VALUE ? 1 : last + 1;
  for (let i: usize = 0; i < <usize>count; i++) {
    const operation = program + i * SIZE;
    atomic.store<i32>(operation, 0, DONE);
    atomic.store<i32>(operation, 0, SLEEPERS);
    atomic.store<i64>(operation, (<i64>number) << 32, NEXT);
  }
  store<u32>(control, <u32>program, PROGRAM);
  store<i32>(control, count, COUNT);
  atomic.store<i32>(control, number, NUMBER);
  if (atomic.load<i32>(control, IDLE)) atomic.notify(control + NUMBER, -1);
  takePart(control, number, scratch);
  // A thread that comes late may still look for items, while the next program is being written in the place of this one.
  for (let i: usize = 0; i < <usize>count; i++) atomic.store<i64>(program + i * SIZE, ALL_TAKEN, NEXT);
}

/** What each helping thread calls once: it takes part in every program, until the thread is ended from outside. */
export function help(control: usize, scratch: usize): void {
  let seen: i32 = 0;
  while (true) {
    seen = awaitProgram(control, seen);
    takePart(control, seen, scratch);
  }
}

function awaitProgram(control: usize, seen: i32): i32 {
  for (let i = 0; i < SPINS; i++) {
    const number = atomic.load<i32>(control, NUMBER);
    if (number != seen) return number;
  }
  atomic.add<i32>(control, 1, IDLE);
  while (atomic.load<i32>(control, NUMBER) == seen) atomic.wait<i32>(control + NUMBER, seen, -1);
  atomic.sub<i32>(control, 1, IDLE);
  return atomic.load<i32>(control, NUMBER);
}

function takePart(control: usize, number: i32, scratch: usize): void {
  const program = <usize>load<u32>(control, PROGRAM);
  const count = load<i32>(control, COUNT);
  for (let i = 0; i < count; i++) {
    const operation = program + <usize>i * SIZE;
    const items = load<i32>(operation, ITEMS);
    while (true) {
      const item = takeItem(operation, number, items);
      if (item < 0) break;
      perform(operation, item, scratch);
      const done = atomic.add<i32>(operation, 1, DONE) + 1;
      if (done == items && atomic.load<i32>(operation, SLEEPERS)) atomic.notify(operation + DONE, -1);
    }
    if (!awaitDone(control, operation, number, items)) return;
  }
}

/** -1 if all are taken, or if the program has been replaced by another. */
function takeItem(operation: usize, number: i32, items: i32): i32 {
  while (true) {
    const next = atomic.load<i64>(operation, NEXT);
    if (<i32>(next >> 32) != number || <i32>next >= items) return -1;
    if (atomic.cmpxchg<i64>(operation, next, next + 1, NEXT) == next) return <i32>next;
  }
}

/** Whether the program is still this one. */
function awaitDone(control: usize, operation: usize, number: i32, items: i32): bool {
  let spins = 0;
  while (true) {
    if (atomic.load<i32>(control, NUMBER) != number) return false;
    const done = atomic.load<i32>(operation, DONE);
    if (done >= items) return true;
    if (spins++ < SPINS) continue;
    atomic.add<i32>(operation, 1, SLEEPERS);
    // Not for ever: the program may have been replaced, and the counts begun anew, just before this.
    if (atomic.load<i32>(operation, DONE) == done) atomic.wait<i32>(operation + DONE, done, NANOSECONDS_ASLEEP);
    atomic.sub<i32>(operation, 1, SLEEPERS);
  }
}

import { describe, expect, it } from 'vitest';
import { CuvetteError } from '../../../src/errors.ts';
import type { Principal } from '../../../src/surfaces/rest/principal.ts';
import { createLimiter, retryAfterOf } from '../../../src/surfaces/rest/rate-limit.ts';

const ANN: Principal = { id: 'user:ann', kind: 'jwt' };
const BEN: Principal = { id: 'user:ben', kind: 'jwt' };

function limiterAt(limits: { rateLimit?: number; maxRunning?: number }) {
  const clock = { seconds: 0 };
  const limiter = createLimiter({ rateLimit: 0, maxRunning: 0, ...limits }, () => clock.seconds * 1000);
  return { clock, limiter };
}

/** Seconds to wait; nothing if the call went through. */
function refused(enter: () => unknown): number | undefined {
  try {
    enter();
    return undefined;
  } catch (error) {
    expect(error).toBeInstanceOf(CuvetteError);
    expect(error).toMatchObject({ code: 'rate_limited', status: 429 });
    return error instanceof CuvetteError ? retryAfterOf(error) : undefined;
  }
}

it('without limits, everything goes through', () => {
  const { limiter } = limiterAt({});
  for (let i = 0; i < 1000; i++) expect(refused(() => limiter.enter(ANN))).toBeUndefined();
});

describe('executions in a minute', () => {
  it('are counted over the last sixty seconds, not by the clock', () => {
    const { clock, limiter } = limiterAt({ rateLimit: 2 });
    limiter.enter(ANN);
    clock.seconds = 50;
    limiter.enter(ANN);
    clock.seconds = 59;
    expect(refused(() => limiter.enter(ANN))).toBe(1);
    clock.seconds = 60;
    limiter.enter(ANN);
    expect(refused(() => limiter.enter(ANN))).toBe(50);
  });

  it('that were refused do not count', () => {
    const { clock, limiter } = limiterAt({ rateLimit: 1 });
    limiter.enter(ANN);
    for (clock.seconds = 1; clock.seconds < 60; clock.seconds++)
      expect(refused(() => limiter.enter(ANN))).toBe(60 - clock.seconds);
    expect(refused(() => limiter.enter(ANN))).toBeUndefined();
  });

  it('have ended or not: it is starts that count', () => {
    const { limiter } = limiterAt({ rateLimit: 1 });
    limiter.enter(ANN)();
    expect(refused(() => limiter.enter(ANN))).toBe(60);
  });

  it('are counted for each principal alone', () => {
    const { limiter } = limiterAt({ rateLimit: 1 });
    limiter.enter(ANN);
    expect(refused(() => limiter.enter(BEN))).toBeUndefined();
    expect(refused(() => limiter.enter(ANN))).toBe(60);
  });
});

describe('executions at once', () => {
  it('make room when one ends, whenever that is', () => {
    const { clock, limiter } = limiterAt({ maxRunning: 2 });
    const leave = limiter.enter(ANN);
    limiter.enter(ANN);
    expect(refused(() => limiter.enter(ANN))).toBe(1);
    clock.seconds = 500;
    expect(refused(() => limiter.enter(ANN))).toBe(1);
    expect(refused(() => limiter.enter(BEN))).toBeUndefined();
    leave();
    expect(refused(() => limiter.enter(ANN))).toBeUndefined();
  });

  it('end only once', () => {
    const { limiter } = limiterAt({ maxRunning: 1 });
    const leave = limiter.enter(ANN);
    leave();
    leave();
    limiter.enter(ANN);
    leave();
    expect(refused(() => limiter.enter(ANN))).toBe(1);
  });

  it('that are refused take nothing from the minute', () => {
    const { clock, limiter } = limiterAt({ maxRunning: 1, rateLimit: 2 });
    const leave = limiter.enter(ANN);
    expect(refused(() => limiter.enter(ANN))).toBe(1);
    leave();
    expect(refused(() => limiter.enter(ANN)?.())).toBeUndefined();
    clock.seconds = 1;
    expect(refused(() => limiter.enter(ANN))).toBe(59);
  });
});

it('an error without a time to wait has none', () => {
  expect(retryAfterOf(new CuvetteError('rate_limited', 'x'))).toBeUndefined();
  expect(retryAfterOf(new CuvetteError('rate_limited', 'x', { cause: new Error('y') }))).toBeUndefined();
});

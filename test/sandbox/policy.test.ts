import { totalmem } from 'node:os';
import { describe, expect, it } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { type Policy, policyOf } from '../../src/sandbox/policy.ts';

const policy = (flags: Record<string, unknown> = {}): Policy => policyOf(readConfig(flags, {}));

describe('the policy of sessions', () => {
  it('has limits by default, and no network', () => {
    expect(policy()).toEqual({
      network: 'none',
      limits: {
        memory: Math.min(2 ** 31, totalmem()),
        processes: 256,
        cpus: 0,
        openFiles: 4096,
        disk: 10 * 2 ** 30,
        fileCount: 200_000,
      },
    });
  });

  it.each([
    ['sessionMemory', 'memory', '100MiB', 104_857_600],
    ['sessionProcesses', 'processes', '17', 17],
    ['sessionCpus', 'cpus', '3', 3],
    ['sessionOpenFiles', 'openFiles', '99', 99],
    ['sessionQuota', 'disk', '5MB', 5_000_000],
    ['sessionFileCount', 'fileCount', '42', 42],
  ] as const)('has of %s the limit %s, and no other', (setting, limit, given, value) => {
    expect(policy({ [setting]: given }).limits).toEqual({ ...policy().limits, [limit]: value });
    expect(policy({ [setting]: '0' }).limits).toEqual({ ...policy().limits, [limit]: 0 });
  });

  it('never has more memory than the machine', () => {
    expect(policy({ sessionMemory: '900TB' }).limits.memory).toBe(totalmem());
    expect(policy({ sessionMemory: String(totalmem() + 1) }).limits.memory).toBe(totalmem());
    expect(policy({ sessionMemory: String(totalmem() - 1) }).limits.memory).toBe(totalmem() - 1);
  });

  it.each([
    ['none', 'none'],
    ['allow', 'allow'],
    ['packages.example.org', 'proxy'],
    ['packages.example.org,*.example.com', 'proxy'],
    ['*', 'proxy'],
    [['packages.example.org'], 'proxy'],
  ])('has for the network %j: %s', (network, expected) => {
    expect(policy({ network }).network).toBe(expected);
  });
});

import { describe, expect, it } from 'vitest';
import { normalise } from '../../../src/interpreters/python/environment.ts';
import table from '../../../src/interpreters/python/package-names.json' with { type: 'json' };
import { resolvePackage } from '../../../src/interpreters/python/package-names.ts';

describe('a name in an import statement', () => {
  it.each([
    ['sklearn', 'scikit-learn'],
    ['yaml', 'pyyaml'],
    ['PIL', 'pillow'],
    ['bs4', 'beautifulsoup4'],
    ['dateutil', 'python-dateutil'],
    ['dotenv', 'python-dotenv'],
    ['serial', 'pyserial'],
    ['attr', 'attrs'],
  ])('%s stands for %s', (module, distribution) => {
    expect(resolvePackage(module)).toEqual({ kind: 'known', distribution });
  });

  it.each(['requests', 'pandas', 'torch', 'tiktoken'])('%s stands for itself', (module) => {
    expect(resolvePackage(module)).toEqual({ kind: 'known', distribution: module });
  });

  it('stands for the distribution whose name is written with dashes', () => {
    expect(resolvePackage('more_itertools')).toEqual({ kind: 'known', distribution: 'more-itertools' });
  });

  it('with dots stands for the distribution of the longest part that is known', () => {
    expect(resolvePackage('sklearn.linear_model')).toEqual({ kind: 'known', distribution: 'scikit-learn' });
    expect(resolvePackage('google.cloud.storage')).toEqual({ kind: 'known', distribution: 'google-cloud-storage' });
    expect(resolvePackage('snowflake.ml.modeling')).toEqual({ kind: 'known', distribution: 'snowflake-ml-python' });
    expect(resolvePackage('requests.adapters')).toEqual({ kind: 'known', distribution: 'requests' });
  });

  it('that nobody knows may be a distribution of that name', () => {
    expect(resolvePackage('Some_Odd_Thing.inner')).toEqual({ kind: 'unknown', distribution: 'some-odd-thing' });
  });

  it.each(['constructor', '__proto__', 'toString', 'hasOwnProperty', 'valueOf', 'prototype'])(
    '%s, which every object has, is not known',
    (module) => {
      expect(resolvePackage(module).kind).not.toBe('known');
      expect(resolvePackage(`${module}.inner`).kind).not.toBe('known');
    },
  );

  it.each(['_rfile', '_efolder', '__proto__'])('%s is never handed on as an option of the installer', (module) => {
    expect(resolvePackage(module)).not.toMatchObject({ distribution: expect.stringMatching(/^-/) });
  });

  it('is taken as it is written, because Python does', () => {
    expect(resolvePackage('pil')).not.toEqual({ kind: 'known', distribution: 'pillow' });
  });
});

describe('a misspelt module name', () => {
  it.each([
    ['reqeusts', 'requests'],
    ['request', 'requests'],
    ['requestss', 'requests'],
    ['pandsa', 'pandas'],
    ['numpyy', 'numpy'],
    ['matplotlab', 'matplotlib'],
    ['tensorflwo', 'tensorflow'],
    ['Reqeusts', 'requests'],
  ])('like %s is answered with %s, and nothing is installed for it', (module, suggestion) => {
    expect(resolvePackage(module)).toEqual({ kind: 'misspelt', suggestion });
  });

  it('with dots is judged by its first part', () => {
    expect(resolvePackage('pandsa.core')).toEqual({ kind: 'misspelt', suggestion: 'pandas' });
  });

  it('is not suspected if it is short, where every other name is near', () => {
    expect(resolvePackage('xyz').kind).toBe('unknown');
    expect(resolvePackage('abc').kind).toBe('unknown');
  });

  it('that differs in two letters is suspected only if it is long', () => {
    expect(resolvePackage('transfromesr').kind).toBe('misspelt');
    expect(resolvePackage('pnadsa').kind).toBe('unknown');
  });
});

describe('the table of package names', () => {
  it('resolves each of its imports to the distribution that it names', () => {
    for (const [module, distribution] of Object.entries(table.imports)) {
      expect(resolvePackage(module), module).toEqual({ kind: 'known', distribution });
    }
  });

  it('resolves each name that it knows to itself', () => {
    for (const distribution of table.known.filter((name) => !Object.hasOwn(table.imports, name))) {
      expect(resolvePackage(distribution), distribution).toEqual({ kind: 'known', distribution });
    }
  });

  it('names distributions as the package index does', () => {
    for (const name of [...table.known, ...Object.values(table.imports)]) {
      expect(name).toMatch(/^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/);
      expect(normalise(name)).toBe(name);
    }
  });

  it('has no name twice', () => {
    expect(new Set(table.known).size).toBe(table.known.length);
  });
});

import { describe, expect, it } from 'vitest';
import { harmlessVariables, ownVariables, withoutSecrets } from '../../src/sessions/environment-variables.ts';

const ENV = {
  PATH: '/bin',
  LANG: 'C',
  LC_ALL: 'C',
  HOME: '/root',
  EMPTY: undefined,
  npm_config_registry: 'x',
  CODE_INTERPRETER_API_KEY: 'k',
  CUVETTE_PATH_SECRET: 's',
  AWS_SECRET_ACCESS_KEY: 'a',
  GITHUB_TOKEN: 't',
  PROJECT: 'p',
};

describe('environment variables', () => {
  it("of the user's own are all there, but for what npm says of its own start", () => {
    expect(Object.keys(ownVariables(ENV)).sort()).toEqual(
      Object.keys(ENV)
        .filter((name) => name !== 'EMPTY' && name !== 'npm_config_registry')
        .sort(),
    );
  });

  it('for the code of others are few, and have no secret', () => {
    expect(harmlessVariables('/home', ENV)).toEqual({ PATH: '/bin', LANG: 'C', LC_ALL: 'C', HOME: '/home' });
  });

  it('for processes that others may look at have no secret', () => {
    expect(withoutSecrets(ENV)).toEqual({ PATH: '/bin', LANG: 'C', LC_ALL: 'C', HOME: '/root', PROJECT: 'p' });
  });
});

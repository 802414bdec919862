/** Writes the commands that `cuvette serve` shows its operator to paste. Credentials stand in them as shell variables, never as values. */

import type { Config, SettingRow } from '../config.ts';

export interface BannerOptions {
  url: string;
  /** Opens the workbench page, where callers need no credential. */
  pageToken?: string | undefined;
  config: Config;
  settings: SettingRow[];
  /** The command that starts this program from a shell. */
  command: string;
}

/** How a request is authorized. */
interface Entry {
  /** A command that has to stand first on the line. */
  first?: string;
  base: string;
  /** Option of curl. */
  header?: string;
  libreChat: string[];
}

export function serviceBanner({ command, ...options }: BannerOptions): string {
  const { first, base, header, libreChat } = entryOf(options);
  const quoted = (path: string) => (base.includes('$') ? `"${base}${path}"` : `${base}${path}`);
  const shown = (option: string) => (header ? ` ${option} "${header}"` : '');
  // Not indented: it is there to be copied, and a heredoc ends only at the margin.
  return `${workbenchLine(options)}

Try it, in another terminal:

${first ?? ''}curl -s ${quoted('/exec')}${shown('-H')} -H 'content-type: application/json' -d '{"code":"print(\\"hello\\")","lang":"py","entity_id":"demo"}'

In this folder, in a session of your own:

${command} run <<'PY'
import pandas as pd
df = pd.DataFrame({"a": [1, 2]}); df
PY

Give it to your agent:  claude mcp add cuvette -- ${command} mcp
${first ? 'or by HTTP, from there: ' : '           or by HTTP: '} claude mcp add --transport http cuvette ${quoted('/mcp')}${shown('--header')}
To LibreChat, in .env:  ${libreChat.join(`\n${' '.repeat(24)}`)}

Ctrl-C stops it.`;
}

/** The address of the workbench page, as a browser on this machine reaches it. */
export function pageAddress({ url, pageToken }: Pick<BannerOptions, 'url' | 'pageToken'>): string {
  return `${onThisMachine(url)}/${pageToken === undefined ? '' : `?token=${pageToken}`}`;
}

function workbenchLine({ config, settings, ...options }: Omit<BannerOptions, 'command'>): string {
  const address = pageAddress(options);
  if (options.pageToken !== undefined) return `Workbench: ${address}`;
  if (config.apiKey) return `Workbench: ${address} (sign in with the key)`;
  if (config.pathSecret)
    return `Workbench: ${address}k/SECRET/ (with what ${variableOf('pathSecret', settings)} is for SECRET)`;
  return `Workbench: ${address} (sign in with a token that LibreChat has signed)`;
}

function onThisMachine(url: string): string {
  return url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:');
}

function entryOf({ url, config, settings }: Omit<BannerOptions, 'command'>): Entry {
  const here = onThisMachine(url);
  const there = here === url ? url : url.replace(/\/\/.*:/, '//HOST:');
  const host = here === url ? [] : ['with the name of this machine, as LibreChat reaches it, for HOST'];
  const hasTokens = Boolean(config.jwtPublicKey || config.jwksUrl);
  const secret = variableOf('pathSecret', settings);
  const key = variableOf('apiKey', settings);
  const libreChat = hasTokens
    ? [`LIBRECHAT_CODE_BASEURL=${there}/v1`, ...host, 'and CODEAPI_JWT_ENABLED=true: it signs the tokens itself']
    : config.pathSecret
      ? [`LIBRECHAT_CODE_BASEURL=${there}/k/SECRET/v1`, ...host, `with what ${secret} is for SECRET`]
      : config.apiKey
        ? [
            `LIBRECHAT_CODE_BASEURL=${there}/v1`,
            ...host,
            'and the key in LIBRECHAT_CODE_API_KEY; since 0.8.6 it takes --path-secret instead (docs/librechat.md)',
          ]
        : [`LIBRECHAT_CODE_BASEURL=${there}/v1`];
  if (config.apiKey) return { first: ask(key, 'the key'), base: here, header: `x-api-key: $${key}`, libreChat };
  if (config.pathSecret) return { first: ask(secret, 'the secret'), base: `${here}/k/$${secret}`, libreChat };
  if (hasTokens)
    return {
      first: ask('CUVETTE_TOKEN', 'a token that LibreChat has signed and that is still valid'),
      base: here,
      header: 'authorization: Bearer $CUVETTE_TOKEN',
      libreChat,
    };
  return { base: here, libreChat };
}

/** Returns the environment variable that the operator has set, else the first that exists for the setting. */
function variableOf(name: keyof Config, settings: SettingRow[]): string {
  const row = settings.find(({ setting }) => setting === name);
  const [, used] = /^environment (.+)/.exec(row?.source ?? '') ?? [];
  return used ?? row?.variables[0] ?? '';
}

/** Reads a secret without showing it or keeping it in the history; on the line of the command, because pasted text after it would be the answer. */
function ask(variable: string, what: string): string {
  return `[ "$${variable}" ] || { printf 'Paste ${what}, and press Enter: ' >&2; read -rs ${variable}; echo >&2; }; `;
}

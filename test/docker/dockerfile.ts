/** Reads a Dockerfile into its stages, each with its instructions in order. Knows the instructions that ours uses, and refuses others. */

export type Instruction =
  | { kind: 'workdir'; path: string }
  | { kind: 'copy'; from: string | undefined; sources: string[]; target: string }
  | { kind: 'run'; command: string }
  | { kind: 'shell'; argv: string[] }
  | { kind: 'arg'; name: string; value: string }
  | { kind: 'env'; values: [string, string][] }
  | { kind: 'user'; user: string }
  | { kind: 'healthcheck' | 'entrypoint' | 'cmd'; argv: string[] };

export interface Stage {
  base: string;
  name: string | undefined;
  instructions: Instruction[];
}

export function parseDockerfile(text: string): Stage[] {
  const stages: Stage[] = [];
  for (const line of logicalLines(text)) {
    const [, word = '', rest = ''] = /^(\w+)\s+(.*)$/s.exec(line) ?? [];
    if (word === 'FROM') {
      const [, base = '', name] = /^(\S+)(?: AS (\S+))?$/.exec(rest) ?? [];
      stages.push({ base, name, instructions: [] });
      continue;
    }
    const stage = stages.at(-1);
    if (!stage) throw new Error(`${word} comes before the first FROM.`);
    stage.instructions.push(...instructionOf(word, rest));
  }
  return stages;
}

/** Without comments, and with continued lines joined as the shell would. */
function logicalLines(text: string): string[] {
  const lines = text.split('\n').filter((line) => !/^\s*#/.test(line));
  return lines
    .join('\n')
    .replaceAll(/\\\n\s*/g, ' ')
    .split('\n')
    .filter((line) => line.trim() !== '');
}

function instructionOf(word: string, rest: string): Instruction[] {
  switch (word) {
    case 'WORKDIR':
      return [{ kind: 'workdir', path: rest }];
    case 'RUN':
      return [{ kind: 'run', command: rest }];
    case 'SHELL':
      return [{ kind: 'shell', argv: argvOf(rest) }];
    case 'USER':
      return [{ kind: 'user', user: rest }];
    case 'COPY': {
      const words = rest.split(/\s+/);
      const from = words[0]?.startsWith('--from=') ? words.shift()?.slice('--from='.length) : undefined;
      return [{ kind: 'copy', from, sources: words.slice(0, -1), target: words.at(-1) ?? '' }];
    }
    case 'ARG': {
      const [, name = '', value = ''] = /^(\w+)=?(.*)$/.exec(rest) ?? [];
      return [{ kind: 'arg', name, value: value.replace(/^"(.*)"$/, '$1') }];
    }
    case 'ENV': {
      const pairs = [...rest.matchAll(/(\w+)=(\S+)/g)];
      return [{ kind: 'env', values: pairs.map(([, name = '', value = '']): [string, string] => [name, value]) }];
    }
    case 'HEALTHCHECK':
      return [{ kind: 'healthcheck', argv: argvOf(rest.slice(rest.indexOf('CMD') + 'CMD'.length)) }];
    case 'ENTRYPOINT':
      return [{ kind: 'entrypoint', argv: argvOf(rest) }];
    case 'CMD':
      return [{ kind: 'cmd', argv: argvOf(rest) }];
    case 'VOLUME':
    case 'EXPOSE':
      return [];
    default:
      throw new Error(`This test does not know the instruction ${word} of a Dockerfile.`);
  }
}

function argvOf(json: string): string[] {
  const argv: unknown = JSON.parse(json);
  if (!Array.isArray(argv) || !argv.every((one) => typeof one === 'string'))
    throw new Error(`Not a list of words: ${json}`);
  return argv;
}

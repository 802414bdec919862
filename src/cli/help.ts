/** `cuvette help`, `cuvette --version`. */

import { VERSION } from '../version.ts';

const TEXT = `Cuvette ${VERSION}: live code sessions for AI agents, on your own machine.

  cuvette mcp              serve an agent over stdio (this is what the agent starts)
  cuvette run [FILE]       run Python from a file or from standard input in the agent's live session
  cuvette serve            run a service for your own shell, in the foreground
  cuvette call TOOL [JSON] call one of the agent's tools from the shell
  cuvette doctor           what works on this machine, what does not, and what to do about it
  cuvette help, --version

Settings for mcp and serve (flag, or environment variable):
  --python PATH            CUVETTE_PYTHON         the Python of the builtin interpreter; default: python3 on PATH
  --no-auto-install        CUVETTE_AUTO_INSTALL   do not install missing packages; say how to
  --timeout SECONDS        CUVETTE_TIMEOUT        limit of a call; default 300, 0 for none
  --output-limit N         CUVETTE_OUTPUT_LIMIT   characters in an answer; default 25000
  --max-output N           CUVETTE_MAX_OUTPUT     characters that one execution may print; default 100000000
  --linger SECONDS         CUVETTE_LINGER         how long an interpreter waits for a server to come back; default 3600
  --project FOLDER                                the project's folder; default: the current one
                           CUVETTE_HOME           one folder for everything, in place of ~/.cache and ~/.local/share

  --idle SECONDS           CUVETTE_IDLE           serve: end when nobody has used it for so long; default: never
  --log-level LEVEL        CUVETTE_LOG_LEVEL      debug, info, warn, error, silent; default warn

For run:
  -c CODE                  code from the command line, in place of a file
  -i, --interpreter NAME   another interpreter than the builtin one
  --session ID  --timeout SECONDS
For run and call:
  --server PID             which server, where several fit
  --start                  start a background server if there is none, even inside an agent
For call and doctor:
  --json                   the structured answer
`;

export async function main([first]: string[]): Promise<number> {
  process.stdout.write(first === '--version' || first === '-v' ? `${VERSION}\n` : TEXT);
  return 0;
}

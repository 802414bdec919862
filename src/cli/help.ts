/** `cuvette help`, `cuvette --version`. */

import { VERSION } from '../version.ts';

const TEXT = `Cuvette ${VERSION}: live code sessions for AI agents, on your own machine.

  cuvette mcp              serve an agent over stdio (this is what the agent starts)
  cuvette run [FILE]       run code from a file or from standard input in the agent's live session
  cuvette serve            serve HTTP (REST, LibreChat, MCP), and the shells of this folder, in the foreground
  cuvette call TOOL [JSON] call one of the agent's tools from the shell
  cuvette lab demo         look inside a language model: three directions, and which of them it uses
  cuvette lab serve        serve a model to an agent's lab tools
  cuvette doctor           what works on this machine, what does not, and what to do about it
  cuvette help, --version

Settings for mcp and serve (flag, or environment variable):
  --python PATH            CUVETTE_PYTHON         the Python of the builtin interpreter; default: python3 on PATH
  --no-auto-install        CUVETTE_AUTO_INSTALL   do not install missing packages; say how to
  --timeout SECONDS        CUVETTE_TIMEOUT        limit of a call; default 300, 0 for none
  --output-limit N         CUVETTE_OUTPUT_LIMIT   characters in an answer; default 25000
  --max-output N           CUVETTE_MAX_OUTPUT     characters that one execution may print; default 100000000
  --linger SECONDS         CUVETTE_LINGER         how long an interpreter waits for a server to come back; default 3600
  --sandbox on|off|auto    CUVETTE_SANDBOX        confine code; default for serve: auto, where the machine can; for mcp: off
  --network HOSTS          CUVETTE_NETWORK        what confined code may reach: none (default), allow, or hosts with commas
  --session-memory SIZE    CUVETTE_SESSION_MEMORY memory of each confined session; default 2GiB
  --no-store               CUVETTE_STORE          keep names, addresses and tokens of labs in memory alone
  --tools auto|code|all    CUVETTE_TOOLS          tools that agents are shown; default auto: the lab's once it is asked for
  --structured             CUVETTE_STRUCTURED     answers over MCP with their fields, for programs; agents show them in place of the text
  --log-level LEVEL        CUVETTE_LOG_LEVEL      debug, info, warn, error, silent; default warn
  --project FOLDER                                the project's folder; default: the current one
  --config FILE            CUVETTE_CONFIG         settings as JSON; default for serve: cuvette.json in the project's folder
                           CUVETTE_HOME           one folder for everything, in place of ~/.cache and ~/.local/share

For serve (all of them: docs/settings.md, or cuvette serve --print-config):
  --host ADDRESS           CUVETTE_HOST           default 127.0.0.1; any other needs one of the three next
  --port N                 CUVETTE_PORT           default 8000; 0 for any that is free
  --api-key KEY            CUVETTE_API_KEY        callers show it in the header x-api-key
  --path-secret SECRET     CUVETTE_PATH_SECRET    callers have it in the URL: http://HOST:8000/k/SECRET/v1
  --jwt-public-key PEM     CUVETTE_JWT_PUBLIC_KEY callers show tokens that LibreChat has signed
  --lab-endpoints LIST     CUVETTE_LAB_ENDPOINTS  what callers may attach as a lab, with commas between
  --max-sessions N         CUVETTE_MAX_SESSIONS   sessions with live interpreters; default 50
  --idle SECONDS           CUVETTE_IDLE           for shells alone, in the background; end after this time without use

For lab serve:
  --model MODEL            demo (default), a folder, or a Hugging Face id
  --engine NAME            embedded (default), or torch: any model of transformers, on a GPU where there is one
  --dtype TYPE  --device NAME  --quantization 8bit|4bit   for torch; default: bfloat16 on all GPUs, else float32
  --torch-python PATH      CUVETTE_TORCH_PYTHON   a Python that has torch and transformers; default: found, or made once
  --host ADDRESS  --port N default 127.0.0.1 and 8787; another than this machine's needs TLS
  --tunnel NAME            cloudflared or ngrok, as installed here, makes an https address for it; default none
  --tls-cert FILE  --tls-key FILE  serve https by this certificate and key
  --token-file FILE        where the token is, or is to be written; default: a new one, printed once
                           CUVETTE_LAB_TOKEN      the token, in place of a file
For lab demo:
  --out FILE               the report; default ./cuvette-lab-report.html
  --seed N                 of everything random; default 0

For run:
  -c CODE                  code from the command line, in place of a file
  -i, --interpreter NAME   bash, node, typescript, go, cpp, or a Python of your own; default: the builtin Python
  --session ID  --timeout SECONDS
For run and call:
  --server PID             which server, where several fit
  --start                  start a background server if there is none, even inside an agent
For call and doctor:
  --json                   the structured answer
For doctor, also those of serve: it runs a call in each language as that service would
`;

export async function main([first]: string[]): Promise<number> {
  process.stdout.write(first === '--version' || first === '-v' ? `${VERSION}\n` : TEXT);
  return 0;
}

/** Runs bash scripts; in a stateful session, a script starts with the variables and in the folder that the last one left. */

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Language, type Source, toolOf } from './language.ts';
import { probeTool } from './probe-command.ts';

export const bash: Language = {
  name: 'bash',
  title: 'bash',
  aliases: ['bash', 'sh'],
  extension: 'sh',
  install: 'Install it (Debian, Ubuntu: apt install bash; macOS: brew install bash).',

  probe: () => probeTool({ names: ['bash'], args: ['--version'], version: /version (\d[\d.]*)/ }),

  async plan(source) {
    const { path } = await toolOf(bash);
    const { code, args, program, strict, state } = source;
    await writeFile(join(program.folder, 'main.sh'), code);
    const options = strict && !state ? ['-euo', 'pipefail'] : [];
    const argv = [path, ...options, join(program.seen, 'main.sh'), ...args];
    const env = state && { BASH_ENV: await writeStartup(source, state.seen) };
    return { steps: [{ kind: 'run', argv, ...(env && { env }) }], own: [] };
  },
};

/** bash runs the file that BASH_ENV names before a script; so the script itself runs as it would without. */
async function writeStartup({ program, strict }: Source, state: string): Promise<string> {
  const given = [
    `__cuvette_state=${quoted(state)}`,
    `__cuvette_scratch=${quoted(join(program.seen, 'names'))}`,
    // On the command line, bash would not let a state turn it off again.
    `__cuvette_is_strict=${strict ? 'yes' : ''}`,
  ];
  await writeFile(join(program.folder, 'state.sh'), `${given.join(' ')}\n${KEEP_STATE}`);
  return join(program.seen, 'state.sh').replace(/[$`"\\]/g, '\\$&');
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** What the shell itself sets and counts; most of it cannot be assigned. */
const SPECIAL = `_ BASH BASHOPTS BASHPID BASH_ALIASES BASH_ARGC BASH_ARGV BASH_ARGV0 BASH_CMDS BASH_COMMAND BASH_COMPAT BASH_ENV \
BASH_EXECUTION_STRING BASH_LINENO BASH_LOADABLES_PATH BASH_MONOSECONDS BASH_REMATCH BASH_SOURCE BASH_SUBSHELL BASH_TRAPSIG \
BASH_VERSINFO BASH_VERSION COLUMNS COMP_WORDBREAKS DIRSTACK EPOCHREALTIME EPOCHSECONDS EUID FUNCNAME GROUPS HISTCMD HOSTNAME \
HOSTTYPE LINENO LINES MACHTYPE OPTERR OPTIND OSTYPE PIPESTATUS PPID PWD RANDOM SECONDS SHELLOPTS SHLVL SRANDOM UID`;

/**
 * Restores the shell's state, and saves it when the shell exits.
 * - What the environment gave is saved only if the program changed it: the next call may have another environment.
 * - When a function calls `exit`, its local variables are still there and hide the shell's own. A subshell finds them:
 *   it marks the shell's own variable of each name (-t, which does nothing), and sees whether that is the visible one.
 * - Saving hangs on the EXIT trap, so `trap` is a function that adds the user's own to it. bash restores the ERR, DEBUG and
 *   RETURN traps when a function returns, so those are set once, to run what stands in a variable.
 */
const KEEP_STATE = `
unset BASH_ENV
__cuvette_special=' ${SPECIAL} ' __cuvette_names=() __cuvette_values=()
__cuvette_leave='{ __cuvette_save "$?" && :; } >/dev/null 2>&1'

__cuvette_save() {
  # A program that does not parse leaves the state as it was.
  [[ $1 != 2 ]] || "$BASH" -O extglob -n -- "$0" || return "$1"
  (
    {
      __cuvette_options="$SHELLOPTS $BASHOPTS"
      builtin shopt -u nocasematch
      builtin printf 'builtin shopt -s extglob\\n[[ $PWD == %q ]] || CDPATH= builtin cd -- %q\\n' "$PWD" "$PWD"
      __cuvette_print_variables
      builtin unset -f trap __cuvette_save __cuvette_print_variables __cuvette_find_hidden \\
        __cuvette_set_options __cuvette_trap_exit __cuvette_trap_later __cuvette_print_traps
      builtin declare -f
      builtin umask -p
      builtin alias -p
      [[ -z \${BASH_ALIASES[*]+set} ]] || __cuvette_options+=:expand_aliases
      builtin printf '__cuvette_set_options %s\\n' "$__cuvette_options"
    } >|"$__cuvette_state.new" || builtin exit
    PATH=/usr/bin:/bin:$PATH
    exec mv -f -- "$__cuvette_state.new" "$__cuvette_state"
  )
  return "$1"
}

__cuvette_print_variables() {
  local __cuvette_name __cuvette_count __cuvette_same=:
  builtin compgen -v >|"$__cuvette_scratch.end"
  IFS=$'\\n' builtin read -r -d '' -a __cuvette_list <"$__cuvette_scratch.end"
  if ((\${#FUNCNAME[@]} > 3 && BASH_VERSINFO[0] > 4)); then
    while IFS=' ' builtin read -r __cuvette_name __cuvette_count; do
      for ((; __cuvette_count > 1; __cuvette_count--)); do builtin unset -v "$__cuvette_name"; done
    done <<<"$(__cuvette_find_hidden)"
  fi
  for ((__cuvette_count = 0; __cuvette_count < \${#__cuvette_names[@]}; __cuvette_count++)); do
    __cuvette_name=\${__cuvette_names[__cuvette_count]}
    if [[ -z \${!__cuvette_name+set} ]]; then
      builtin printf 'builtin unset -v %s\\n' "$__cuvette_name"
    elif [[ \${!__cuvette_name} == "\${__cuvette_values[__cuvette_count]}" ]]; then
      __cuvette_same+=$__cuvette_name:
    fi
  done
  for __cuvette_name in "\${__cuvette_list[@]}"; do
    [[ $__cuvette_name == __cuvette_* || $__cuvette_special == *" $__cuvette_name "* ]] && continue
    [[ $__cuvette_same == *":$__cuvette_name:"* ]] || builtin declare -p "$__cuvette_name"
  done
}

# Names that a function's variable hides, each with how many there are, one of them the shell's own.
__cuvette_find_hidden() {
  for __cuvette_name in "\${__cuvette_list[@]}"; do
    [[ $__cuvette_name == __cuvette_* || $__cuvette_special == *" $__cuvette_name "* ]] && continue
    builtin declare -gt "$__cuvette_name"
    [[ \${!__cuvette_name@a} == *t* ]] && continue
    __cuvette_count=0
    while builtin declare -p "$__cuvette_name" >/dev/null; do
      __cuvette_count=$((__cuvette_count + 1))
      builtin unset -v "$__cuvette_name" || break
    done
    builtin printf '%s %s\\n' "$__cuvette_name" "$__cuvette_count"
  done
}

__cuvette_set_options() {
  local IFS=: __cuvette_name
  for __cuvette_name in $SHELLOPTS; do [[ :$1: == *":$__cuvette_name:"* ]] || builtin set +o "$__cuvette_name"; done
  for __cuvette_name in $BASHOPTS; do [[ :$2: == *":$__cuvette_name:"* ]] || builtin shopt -u "$__cuvette_name"; done
  for __cuvette_name in $2; do [[ :$BASHOPTS: == *":$__cuvette_name:"* ]] || builtin shopt -s "$__cuvette_name"; done
  for __cuvette_name in $1; do [[ :$SHELLOPTS: == *":$__cuvette_name:"* ]] || builtin set -o "$__cuvette_name"; done
}

trap() {
  { local - && builtin set +x; } 2>/dev/null
  local __cuvette_action=- __cuvette_spec __cuvette_others=()
  case \${1-} in
    -l* | -[!p-]*) builtin trap "$@"; return ;;
    '' | -p) [[ $# -eq 0 || \${1-} == -p ]] && { __cuvette_print_traps "\${@:2}"; return; } ;;
    --) shift ;;
  esac
  if [[ $# -gt 1 && \${1-} != [0-9]* ]]; then
    __cuvette_action=$1
    shift
  fi
  for __cuvette_spec; do
    case $__cuvette_spec in
      0 | [Ee][Xx][Ii][Tt]) __cuvette_trap_exit "$__cuvette_action" ;;
      [Ee][Rr][Rr]) __cuvette_trap_later ERR "$__cuvette_action" ;;
      [Dd][Ee][Bb][Uu][Gg]) __cuvette_trap_later DEBUG "$__cuvette_action" ;;
      [Rr][Ee][Tt][Uu][Rr][Nn]) __cuvette_trap_later RETURN "$__cuvette_action" ;;
      *) __cuvette_others+=("$__cuvette_spec") ;;
    esac
  done
  [[ \${#__cuvette_others[@]} -eq 0 ]] || builtin trap -- "$__cuvette_action" "\${__cuvette_others[@]}"
}

__cuvette_trap_exit() {
  if [[ $1 == - ]]; then builtin unset -v __cuvette_EXIT; else __cuvette_EXIT=$1; fi
  if [[ $BASH_SUBSHELL -gt 0 ]]; then
    builtin trap -- "$1" EXIT
  elif [[ $1 == - ]]; then
    builtin trap -- "$__cuvette_leave" EXIT
  else
    builtin trap -- "$__cuvette_leave; $1
$__cuvette_leave" EXIT
  fi
}

__cuvette_trap_later() {
  if [[ $2 == - ]]; then builtin unset -v "__cuvette_$1"; else builtin printf -v "__cuvette_$1" %s "$2"; fi
  builtin trap -- 'case \${FUNCNAME-} in trap | __cuvette_*) ;; *) builtin eval "\${__cuvette_'"$1"'-}" ;; esac' "$1"
}

__cuvette_print_traps() {
  local __cuvette_name __cuvette_spec
  for __cuvette_spec in "\${@:-EXIT}"; do
    case $__cuvette_spec in
      EXIT | ERR | DEBUG | RETURN) ;;
      *) builtin trap -p "$__cuvette_spec"; continue ;;
    esac
    __cuvette_name=__cuvette_$__cuvette_spec
    [[ -z \${!__cuvette_name+set} ]] || builtin printf "trap -- '%s' %s\\n" "\${!__cuvette_name//\\'/\\'\\\\\\'\\'}" "$__cuvette_spec"
  done
  [[ $# -gt 0 ]] || {
    builtin trap -p 1 2 3 4 5 6 7 8 10 11 12 13 14 15 16 17 18 20 21 22 23 24 25 26 27 28 29 30 31
    __cuvette_print_traps DEBUG ERR RETURN
  }
}

# The files are new: to write over one takes longer.
builtin compgen -e >|"$__cuvette_scratch.start"
IFS=$'\\n' builtin read -r -d '' -a __cuvette_list <"$__cuvette_scratch.start"
for __cuvette_name in "\${__cuvette_list[@]}"; do
  [[ $__cuvette_special != *" $__cuvette_name "* ]] || continue
  __cuvette_names+=("$__cuvette_name") __cuvette_values+=("\${!__cuvette_name-}")
done
builtin trap -- "$__cuvette_leave" EXIT
if [[ -f $__cuvette_state ]]; then
  builtin source "$__cuvette_state" 2>/dev/null
elif [[ $__cuvette_is_strict ]]; then
  builtin set -euo pipefail
fi
`;

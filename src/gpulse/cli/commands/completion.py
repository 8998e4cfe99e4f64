"""`gpulse completion`: print a completion script for a shell, generated from the tables of verbs and options."""

from __future__ import annotations

import sys

from ...errors import UsageError
from ...model.catalog import GPU_METRICS, PROCESS_METRICS
from ..main import VERBS, load
from ..options import DEMO_UNUSED, HELP, Arguments, Option, Verb

SHELLS = ("bash", "zsh", "fish")


def run(arguments: Arguments) -> int:
    """Print the script."""
    if arguments.shell not in SHELLS:
        problem = f"unknown shell {arguments.shell!r}" if arguments.shell else "no shell given"
        raise UsageError(f"completion: {problem};", "choose bash, zsh or fish.")
    sys.stdout.write(script(arguments.shell))
    return 0


VERB = Verb(
    "completion",
    (
        Option("shell", value="SHELL", complete=SHELLS, help="Shell to print the script for: bash, zsh or fish"),
        DEMO_UNUSED,
        HELP,
    ),
    run,
    (
        ('eval "$(gpulse completion bash)"', "in ~/.bashrc"),
        ("gpulse completion fish | source", "in config.fish"),
        ("source <(gpulse completion zsh)", "in ~/.zshrc"),
    ),
)


_WORDS = {
    "metrics": tuple(GPU_METRICS),
    "columns": ("gpu", *PROCESS_METRICS),
    "gpus": ("visible", "job", "all"),
    "files": (),
}


def script(shell: str) -> str:
    """Return the completion script for bash, zsh or fish."""
    verbs = [load(name) for name in VERBS]
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](verbs)


def values(option: Option) -> tuple[str, ...]:
    """Return the words that may follow an option."""
    return option.complete if isinstance(option.complete, tuple) else _WORDS[option.complete]


def _cases(verbs: list[Verb]) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Return the values offered after each flag, for all verbs."""
    found: dict[tuple[str, ...], tuple[str, ...]] = {}
    for verb in verbs:
        for option in verb.options:
            if option.value and not option.positional:
                found[option.flags] = values(option)
    return found


def _bash(verbs: list[Verb]) -> str:
    lines = ["# bash completion for gpulse", "_gpulse() {", '  local word="$2" before="$3" verb="status" w']
    lines.append('  for w in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do')
    lines.append(f'    case "$w" in {"|".join(VERBS)}) verb="$w"; break;; esac')
    lines += ["  done", '  case "$before" in']
    for flags, words in _cases(verbs).items():
        answer = f'COMPREPLY=($(compgen -W "{" ".join(words)}" -- "${{word##*,}}"))' if words else "COMPREPLY=()"
        lines.append(f"    {'|'.join(flags)}) {answer}; return;;")
    lines += ["  esac", '  case "$verb" in']
    for verb in verbs:
        arguments = [word for option in verb.options if option.positional for word in values(option)]
        own = [flag for option in verb.options if not option.positional for flag in option.flags]
        offered = [*own, *arguments, *(VERBS if verb.name == "status" else ())]
        lines.append(f'    {verb.name}) COMPREPLY=($(compgen -W "{" ".join(offered)}" -- "$word"));;')
    lines += ["  esac", "}", "complete -o default -F _gpulse gpulse", ""]
    return "\n".join(lines)


def _zsh(verbs: list[Verb]) -> str:
    lines = ["#compdef gpulse", "_gpulse() {", "  local -a verbs=("]
    lines += [f"    {_quoted(f'{name}:{line}')}" for name, line in VERBS.items()]
    lines += ["  )", "  local verb=${words[2]}", '  case "$verb" in']
    for verb in verbs:
        pattern = verb.name if verb.name != "status" else "status|-*"
        lines.append(f"    {pattern}) _arguments -S {' '.join(_zsh_option(option) for option in verb.options)} ;;")
    lines += ["    *) _describe verb verbs ;;", "  esac", "}", '_gpulse "$@"', ""]
    return "\n".join(lines)


def _zsh_option(option: Option) -> str:
    after = f":{option.value.strip('[]').lower()}:({' '.join(values(option))})" if option.value else ""
    if option.positional:
        return _quoted(f"*{after}")
    help = option.help.replace("[", "(").replace("]", ")").replace(":", " -")
    often = "*" if option.many else ""  # others are offered only once
    return " ".join(_quoted(f"{often}{flag}[{help}]{after}") for flag in option.flags)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _fish(verbs: list[Verb]) -> str:
    lines = ["# fish completion for gpulse", "complete -c gpulse -f"]
    names = " ".join(VERBS)
    for name, line in VERBS.items():
        lines.append(f"complete -c gpulse -n 'not __fish_seen_subcommand_from {names}' -a {name} -d {_quoted(line)}")
    for verb in verbs:
        if verb.name == "status":
            others = " ".join(name for name in VERBS if name != "status")
            condition = f"not __fish_seen_subcommand_from {others}"
        else:
            condition = f"__fish_seen_subcommand_from {verb.name}"
        lines += [_fish_option(option, condition) for option in verb.options]
    return "\n".join([*lines, ""])


def _fish_option(option: Option, condition: str) -> str:
    flags = (
        "".join(f" -l {flag[2:]}" if flag.startswith("--") else f" -s {flag[1:]}" for flag in option.flags)
        if not option.positional
        else ""
    )
    words = f" -a {_quoted(' '.join(values(option)))}" if values(option) else ""
    takes = " -x" if option.value and not option.positional and option.optional is None else ""
    return f"complete -c gpulse -n {_quoted(condition)}{flags}{takes}{words} -d {_quoted(option.help)}"

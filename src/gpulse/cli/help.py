"""Help texts, generated from the tables of verbs and options."""

from __future__ import annotations

from .main import VERBS, load
from .options import Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .options import Verb

_VERSION = Option("--version", "-V", help="Show the version and exit")
_COLUMNS = 88
_EXAMPLE = 44  # if a command of a verb is wider than this, explanations go above the commands


def overview() -> str:
    """Return the help of the whole command."""
    widest = max(len(name) for name in VERBS)
    return "\n".join(
        [
            "gpulse [VERB] [options]",
            "Show what your GPUs are doing, who is using them, and what limits them.",
            "",
            "Verbs:",
            *(f"  {name:<{widest}}  {line}" for name, line in VERBS.items()),
            "",
            "Options (without a verb, gpulse runs status):",
            *option_lines([*load("status").options, _VERSION]),
            "",
            "Use `gpulse VERB --help` for the options of a verb. No GPU? Try `gpulse --demo`.",
        ]
    )


def verb_help(verb: Verb) -> str:
    """Return the help of one verb."""
    arguments = " ".join(option.value for option in verb.options if option.positional)
    lines = [f"gpulse {verb.name} [options] {arguments}".rstrip(), f"{verb.help}.", *option_lines(verb.options)]
    if verb.examples:
        lines += ["", "Examples:", *(f"  {line}" for line in example_lines(verb.examples))]
    return "\n".join(lines)


def option_lines(options: Sequence[Option]) -> list[str]:
    """Return one or more lines per option; long flags are aligned whether or not there is a short one."""
    shown = [usage(option) for option in options]
    shown = [f"    {text}" if text.startswith("--") else text for text in shown]
    widest = max(map(len, shown))
    lines = []
    for option, text in zip(options, shown, strict=True):
        first, *rest = wrap(option.help, _COLUMNS - widest - 4)
        lines.append(f"  {text:<{widest}}  {first}")
        lines += [f"  {'':<{widest}}  {line}" for line in rest]
    return lines


def example_lines(examples: Sequence[tuple[str, str]]) -> list[str]:
    """Return the examples with their explanations as shell comments."""
    widest = max(len(command) for command, _ in examples)
    if widest > _EXAMPLE:
        return [line for command, meaning in examples for line in (f"# {meaning}", command)]
    return [f"{command:<{widest}}  # {meaning}" for command, meaning in examples]


def usage(option: Option) -> str:
    """Return an option as it is written, the short flag first: -w, --watch [SECONDS]."""
    if option.positional:
        return option.value
    flags = sorted(option.flags, key=lambda flag: flag.startswith("--"))
    value = f"[{option.value}]" if option.optional is not None else option.value
    return f"{', '.join(flags)} {value}".rstrip()


def wrap(text: str, columns: int) -> list[str]:
    """Break text into lines at spaces."""
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > columns:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".lstrip()
    return lines

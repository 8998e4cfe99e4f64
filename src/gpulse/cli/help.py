"""Help, made from the tables of verbs and options."""

from __future__ import annotations

from .main import VERBS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .options import Option, Verb

_COLUMNS = 88


def overview() -> str:
    """Return the help of the whole command."""
    widest = max(len(name) for name in VERBS)
    lines = ["gpulse [VERB] [options]: what your GPUs are doing, and why. Without a verb: status.", ""]
    lines += [f"  {name:<{widest}}  {line}" for name, line in VERBS.items()]
    lines += [
        "",
        "`gpulse VERB --help` says more. No GPU here? Add --demo. `gpulse --version` says which version this is.",
    ]
    return "\n".join(lines)


def verb_help(verb: Verb) -> str:
    """Return the help of one verb."""
    arguments = " ".join(option.value for option in verb.options if option.positional)
    lines = [f"gpulse {verb.name} {arguments}".rstrip() + f" [options]: {verb.help[0].lower()}{verb.help[1:]}.", ""]
    widest = max(len(usage(option)) for option in verb.options)
    for option in verb.options:
        first, *rest = wrap(option.help, _COLUMNS - widest - 4)
        lines.append(f"  {usage(option):<{widest}}  {first}")
        lines += [f"  {'':<{widest}}  {line}" for line in rest]
    if verb.examples:
        lines += ["", "Examples:"]
        lines += [f"  {command:<42} {meaning}" for command, meaning in verb.examples]
    return "\n".join(lines)


def usage(option: Option) -> str:
    """Return an option as it is written: --watch [SECONDS], -i."""
    flags = sorted(option.flags, key=len)
    value = f"[{option.value}]" if option.optional is not None else option.value
    if option.positional:
        return option.value
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

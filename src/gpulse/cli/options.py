"""Options: declared once as data; parser, help, completions, man page and docs are all made from these tables."""

from __future__ import annotations

from ..errors import UsageError
from ..units import parse_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any


class Option:
    """One option or argument. `value` names its value in help, empty for a switch; `optional` makes the value so.

    `complete` says what a shell may offer: a tuple of words, or metrics, gpus, files; with `open` other words are fine too.
    A `dashed` option's value may begin with a dash.
    `name` is what its value is called in code. A flag without a dash is an argument; one with `rest` takes every word from the
    first that is no option on, as it stands.
    """

    __slots__ = (
        "complete",
        "dashed",
        "default",
        "flags",
        "help",
        "many",
        "name",
        "open",
        "optional",
        "parse",
        "rest",
        "value",
    )

    def __init__(
        self,
        *flags: str,
        help: str,
        value: str = "",
        default: Any = None,
        parse: Callable[[str], Any] | None = None,
        optional: Any = None,
        complete: tuple[str, ...] | str = (),
        many: bool = False,
        open: bool = False,
        dashed: bool = False,
        rest: bool = False,
        name: str = "",
    ) -> None:
        self.flags = flags
        self.help = help
        self.value = value
        self.default = default
        self.parse = parse
        self.optional = optional
        self.complete = complete
        self.many = many
        self.open = open
        self.dashed = dashed
        self.rest = rest
        self.name = name or max(flags, key=len).lstrip("-").replace("-", "_")

    @property
    def positional(self) -> bool:
        """Whether it is an argument rather than an option."""
        return not self.flags[0].startswith("-")


class Verb:
    """A verb of the command line: its line of help, its options, some examples, and what runs it."""

    __slots__ = ("examples", "help", "name", "options", "run")

    def __init__(
        self,
        name: str,
        help: str,
        options: Sequence[Option],
        run: Callable[[Arguments], int],
        examples: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.name = name
        self.help = help
        self.options = tuple(options)
        self.run = run
        self.examples = tuple(examples)


class Arguments:
    """What was given on the command line, by option name."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


def words(text: str) -> list[str]:
    """Split a list at commas; empty parts are left out."""
    return [word for word in (part.strip() for part in text.split(",")) if word]


def some_words(text: str) -> list[str]:
    """Split a list at commas; raise UsageError when nothing is in it."""
    if not (found := words(text)):
        raise UsageError(f"{text!r} names nothing;", "write it as 0,2 or utilization,power_draw.")
    return found


def seconds(option: str, low: float, high: float) -> Callable[[str], float]:
    """Return a parser of intervals between two bounds."""

    def parse(text: str) -> float:
        interval = parse_duration(text)
        if not low <= interval <= high:
            raise UsageError(f"{option}: {text!r} is not between {low:g} and {high:g} seconds;", f"try {option} 1.")
        return interval

    return parse


SOURCES = ("auto", "nvidia", "demo", "replay:")
COLORS = ("auto", "always", "never")

GPU = Option("--gpu", "--id", "-i", name="gpu", value="LIST", parse=some_words, complete="gpus",
             help="Only these GPUs: index, range (0-3), UUID prefix, PCI bus id, or `visible` (CUDA_VISIBLE_DEVICES).")  # fmt: skip
SOURCE = Option("--source", value="SOURCE", complete=SOURCES, open=True,
                help="Where to read from: auto, nvidia, demo, replay:FILE[@START][*SPEED]. Default: $GPULSE_SOURCE or auto.")  # fmt: skip
DEMO = Option("--demo", default=False, help="A simulated machine with 8 GPUs; the same as --source demo.")
COLOR = Option("--color", value="WHEN", default="auto", complete=COLORS,
               help="auto, always or never; NO_COLOR and FORCE_COLOR are honoured.")  # fmt: skip
THEME = Option("--theme", value="THEME", complete=("dark", "light", "contrast", "blind", "mono"),
               help="The sample: dark, light, contrast (high), blind (safe for colour-blind eyes) or mono.")  # fmt: skip
HELP = Option("--help", "-h", default=False, help="Say this and exit.")
COMMON = (GPU, SOURCE, DEMO, COLOR, HELP)


def parse(verb: Verb, argv: Sequence[str]) -> Arguments:
    """Return the arguments of a verb; raise UsageError with one sentence when they are wrong."""
    arguments = Arguments()
    for option in verb.options:
        setattr(arguments, option.name, option.default)
    for option in verb.options:
        if option.rest:
            argv, command = _split(verb, argv)
            setattr(arguments, option.name, command)
    if argv:
        _parser(verb).parse_args(_joined(verb, argv), arguments)
    return arguments


def _split(verb: Verb, argv: Sequence[str]) -> tuple[Sequence[str], list[str]]:
    """Return our own words and, from -- or the first word that is no option on, those of a command."""
    takes = {flag for option in verb.options if option.value and option.optional is None for flag in option.flags}
    at = 0
    while at < len(argv) and argv[at].startswith("-") and argv[at] != "--":
        at += 2 if argv[at] in takes else 1
    return argv[:at], list(argv[at + 1 :] if argv[at : at + 1] == ["--"] else argv[at:])


def _joined(verb: Verb, argv: Sequence[str]) -> list[str]:
    """Join an option and a value that begins with a dash, as in --sort -power_draw, which argparse takes for an option."""
    dashed = {flag for option in verb.options if option.dashed for flag in option.flags}
    words: list[str] = []
    for word in argv:
        if words and words[-1] in dashed and word.startswith("-"):
            words[-1] = f"{words[-1]}={word}"
        else:
            words.append(word)
    return words


def _parser(verb: Verb) -> Any:
    import argparse  # 8 ms that a bare `gpulse` does not pay

    class Parser(argparse.ArgumentParser):
        """A parser whose errors are ours."""

        def error(self, message: str) -> Any:
            raise UsageError(f"{verb.name}: {_plain(message, verb)}", f"`gpulse {verb.name} --help` lists the options.")

    parser = Parser(add_help=False, allow_abbrev=False)
    for option in verb.options:
        if not option.rest:
            _add(parser, option)
    return parser


def _add(parser: Any, option: Option) -> None:
    if option.positional:
        parser.add_argument(
            option.flags[0], nargs="*" if option.many else "?", type=option.parse or str, default=option.default
        )
    elif not option.value:
        parser.add_argument(*option.flags, dest=option.name, action="store_true")
    else:
        extra: dict[str, Any] = {} if option.optional is None else {"nargs": "?", "const": option.optional}
        parser.add_argument(*option.flags, dest=option.name, type=_typed(option), default=option.default, **extra)


def _typed(option: Option) -> Callable[[str], Any]:
    """Return the option's parser, with a closed list of words checked."""

    def convert(text: str) -> Any:
        closed = option.complete if isinstance(option.complete, tuple) and not option.open else ()
        if closed and text not in closed:
            raise UsageError(f"{option.flags[0]}: {text!r} is none of {', '.join(closed)};", "choose one of these.")
        try:
            return option.parse(text) if option.parse is not None else text
        except UsageError as error:
            named = error.message if option.flags[0] in error.message else f"{option.flags[0]}: {error.message}"
            raise UsageError(named, error.remedy) from None

    return convert


def _plain(message: str, verb: Verb) -> str:
    """Turn argparse's words into ours, with a guess at what was meant."""
    if message.startswith("unrecognized arguments: "):
        from ..model.select import nearest

        word = message.removeprefix("unrecognized arguments: ").split()[0]
        close = nearest(word.partition("=")[0], [flag for option in verb.options for flag in option.flags])
        return f"there is no option {word!r}{f'; did you mean {close[0]}?' if close else '.'}"
    return f"{message.removeprefix('argument ')}."

"""Options, declared once as data: the parser, help, completions, man page and docs are generated from these tables."""

from __future__ import annotations

from ..errors import UsageError
from ..sources.vendors import NAMES, RECORDED, VENDORS
from ..units import parse_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence
    from typing import Any


class Option:
    """One option or positional argument.

    `value` is its placeholder in help, empty for a switch. `optional` is the value used when the option is given without one.
    `complete` lists what a shell offers: a tuple of words, or one of "metrics", "columns", "gpus", "files"; `open` accepts other
    words, too.
    The value of a `dashed` option may start with a dash. `name` is the attribute of Arguments that holds the value.
    A flag without a dash is a positional argument; with `rest` it takes all words from the first non-option on, unchanged.
    """

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
        self.flags, self.help, self.value, self.complete, self.open = flags, help, value, complete, open
        self.parse, self.optional, self.many, self.dashed, self.rest = parse, optional, many, dashed, rest
        self.name = name or max(flags, key=len).lstrip("-").replace("-", "_")
        self.positional = not flags[0].startswith("-")
        self.default = default if value or self.positional else False


class Verb:
    """A verb of the command line: its options, examples, and the function that runs it.

    A `raw` verb has a grammar of its own: it gets its words unparsed, as `Arguments.words`.
    """

    def __init__(
        self,
        name: str,
        options: Sequence[Option],
        run: Callable[[Arguments], int],
        examples: Sequence[tuple[str, str]] = (),
        raw: bool = False,
    ) -> None:
        self.name, self.options, self.run, self.examples, self.raw = name, tuple(options), run, tuple(examples), raw

    @property
    def help(self) -> str:
        """The summary of the verb in the table of verbs."""
        from .main import VERBS

        return VERBS[self.name]


class Arguments:
    """The parsed command line, by option name."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

        def __setattr__(self, name: str, value: Any) -> None: ...


def words(text: str) -> list[str]:
    """Split a list at commas, without empty parts."""
    return [word for word in (part.strip() for part in text.split(",")) if word]


def some_words(text: str) -> list[str]:
    """Split a list at commas; raise UsageError if it is empty."""
    if not (found := words(text)):
        raise UsageError(f"{text!r} is an empty list;", "write it as 0,2 or utilization,power_draw.")
    return found


def seconds(option: str, low: float, high: float) -> Callable[[str], float]:
    """Return a parser for intervals between two bounds."""

    def parse(text: str) -> float:
        interval = parse_duration(text)
        if not low <= interval <= high:
            nearest = f"try {option} {min(max(interval, low), high):g}."
            raise UsageError(f"{option}: {text!r} is not between {low:g} and {high:g} seconds;", nearest)
        return interval

    return parse


def whole(option: str, low: int, high: int, what: str, remedy: str = "") -> Callable[[str], int]:
    """Return a parser for integers between two bounds; `what` is what the error says that a word is not."""

    def parse(text: str) -> int:
        if not (text.isascii() and text.isdecimal() and len(text) < 16 and low <= int(text) <= high):
            raise UsageError(f"{option}: {text!r} is not {what};", remedy or f"try {option} 10.")
        return int(text)

    return parse


def checked_action(verb: str, action: str, actions: Sequence[str], remedy: str = "choose one of these.") -> str:
    """Return the word that says what a verb is to do; raise UsageError if it is none of those."""
    if action not in actions:
        raise UsageError(f"{verb}: {action!r} is none of {', '.join(actions)};", remedy)
    return action


SOURCES = tuple(name.removesuffix("FILE").removesuffix("DIR") for name in NAMES)
COLORS = ("auto", "always", "never")

GPU = Option("--gpu", "--id", "-i", name="gpu", value="LIST", parse=some_words, complete="gpus",
             help="GPUs to use: index, range (0-3), UUID prefix, PCI bus id, `visible` for CUDA_VISIBLE_DEVICES, `job` "
                  "for those of this Slurm job, or `all` (default: all; inside a Slurm job those of the job, except for "
                  "query and smi)")  # fmt: skip
SOURCE = Option("--source", value="SOURCE", complete=SOURCES, open=True,
                help=f"Where to read from: auto, {', '.join(VENDORS)}, demo or replay:FILE[@START][*SPEED] "
                     f"(replay:- for standard input); {', '.join(RECORDED[:-1])} and {RECORDED[-1]} read a recorded machine "
                     "(default: $GPULSE_SOURCE, else auto)")  # fmt: skip
DEMO = Option("--demo", value="MACHINE", default=False, optional="h100x8", complete=("h100x8", "mixed"),
              help="Use a simulated machine: 8 GPUs (h100x8) or several vendors (mixed); same as --source demo "
                   "(default: h100x8)")  # fmt: skip
DEMO_PAST = Option("--demo", help="Use the past of a simulated machine")
DEMO_FLEET = Option("--demo", help="Show a simulated fleet of four machines")
JSON = Option("--json", help="Print JSON")
DEMO_UNUSED = Option("--demo", help="Accepted as by every verb; this one reads no machine")
DEMO_REFUSED = Option("--demo", help="Refused: programs of the simulated machine do not run")
COLOR = Option("--color", value="WHEN", default="auto", complete=COLORS,
               help="When to use color: auto, always or never; auto honors NO_COLOR and FORCE_COLOR (default: auto)")  # fmt: skip
THEME = Option("--theme", value="THEME", complete=("auto", "dark", "light", "neutral", "contrast", "blind", "mono"),
               help="Color theme: dark, light, neutral (readable on both), contrast (high contrast), blind (color-blind "
                    "safe), mono, or auto by the terminal's background (default: $GPULSE_THEME, the saved setting, else "
                    "auto)")  # fmt: skip
HELP = Option("--help", "-h", help="Show this help and exit")
STACKS = Option("--no-stacks",
                help="Do not read the stacks of the program (with py-spy, without pausing it) to name the lines of code that "
                     "keep the GPU waiting")  # fmt: skip
COMMON = (GPU, SOURCE, DEMO, COLOR, THEME, HELP)


def refuse_demo(verb: str, arguments: Arguments) -> None:
    """Raise UsageError if a verb that needs a running program was called with --demo."""
    if arguments.demo:
        raise UsageError(f"{verb}: programs of the simulated machine do not run;", "name a process of this machine.")


def parse(verb: Verb, argv: Sequence[str]) -> Arguments:
    """Return the parsed arguments of a verb; raise UsageError if they are wrong."""
    arguments = Arguments()
    for option in verb.options:
        setattr(arguments, option.name, option.default)
    if verb.raw:
        arguments.words = list(argv)
        return arguments
    for option in verb.options:
        if option.rest:
            argv, command = _split(verb, argv)
            setattr(arguments, option.name, command)
    if argv:
        _parser(verb).parse_args(_joined(verb, argv), arguments)
    return arguments


def skip_options(verb: Verb, argv: Sequence[str], stops: Container[str]) -> int:
    """Return the position of the first word that is not an option of the verb or its value; --help is not skipped.

    An optional value (--watch [SECONDS]) is not skipped if it is one of `stops`.
    """
    options = (option for option in verb.options if option is not HELP and not option.positional)
    known = {flag: option for option in options for flag in option.flags}
    at = 0
    while at < len(argv) and (option := known.get(argv[at].partition("=")[0])) is not None:
        at += 1
        if option.value and "=" not in argv[at - 1] and at < len(argv):
            at += _takes(option, argv[at], stops)
    return at


def _takes(option: Option, word: str, stops: Container[str]) -> bool:
    """Return whether a word that follows an option is its value."""
    if option.optional is None:
        return True
    if option.complete and isinstance(option.complete, tuple) and not option.open:
        return word in option.complete
    return not (word.startswith("-") or word in stops)


def _split(verb: Verb, argv: Sequence[str]) -> tuple[Sequence[str], list[str]]:
    """Split into our own options and the command that starts after -- or at the first word that is not an option."""
    takes = {flag for option in verb.options if option.value and option.optional is None for flag in option.flags}
    closed = _closed(verb)
    at = 0
    while at < len(argv) and argv[at].startswith("-") and argv[at] != "--":
        at += (
            2
            if argv[at] in takes or argv[at + 1 : at + 2] in [[word] for word in closed.get(argv[at], ("", ()))[1]]
            else 1
        )
    return argv[:at], list(argv[at + 1 :] if argv[at : at + 1] == ["--"] else argv[at:])


def _joined(verb: Verb, argv: Sequence[str]) -> list[str]:
    """Join an option and a value that argparse would get wrong: one that starts with a dash (--sort -power_draw), or an
    optional one from a list (--demo mixed), where argparse would take any word that follows.
    """
    dashed = {flag for option in verb.options if option.dashed for flag in option.flags}
    closed = _closed(verb)
    words: list[str] = []
    for word in argv:
        before = words[-1] if words else ""
        if (before in dashed and word.startswith("-")) or word in closed.get(before, ("", ()))[1]:
            words[-1] = f"{before}={word}"
        else:
            words.append(word)
    return [f"{word}={closed[word][0]}" if word in closed else word for word in words]


def _closed(verb: Verb) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return the flag of --demo, its default and its list, if the verb has it: verbs with arguments have it too."""
    return {"--demo": (str(DEMO.optional), ("h100x8", "mixed"))} if DEMO in verb.options else {}


def _parser(verb: Verb) -> Any:
    import argparse  # takes 8 ms, which a bare `gpulse` saves

    class Parser(argparse.ArgumentParser):
        """An argparse parser that raises UsageError."""

        def error(self, message: str) -> Any:
            raise UsageError(f"{verb.name}: {_plain(message, verb)}", f"see `gpulse {verb.name} --help`.")

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
    """Return the option's parser, which also checks a closed list of words."""

    def convert(text: str) -> Any:
        closed = option.complete if isinstance(option.complete, tuple) and not option.open else ()
        if closed and text not in closed:
            from ..model.select import did_you_mean

            message = f"{option.flags[0]}: unknown value {text!r}{did_you_mean(text, closed)}"
            raise UsageError(message, f"choose one of {', '.join(closed)}.")
        try:
            return option.parse(text) if option.parse is not None else text
        except UsageError as error:
            named = error.message if option.flags[0] in error.message else f"{option.flags[0]}: {error.message}"
            raise UsageError(named, error.remedy) from None

    return convert


def _plain(message: str, verb: Verb) -> str:
    """Reword a message of argparse, and suggest what was probably meant."""
    if message.startswith("unrecognized arguments: "):
        from ..model.select import nearest

        word = message.removeprefix("unrecognized arguments: ").split()[0]
        if not word.startswith("-"):
            return f"unexpected argument {word!r}"
        # compared without dashes, which would make all options similar
        names = {flag.lstrip("-"): flag for option in verb.options for flag in option.flags}
        close = nearest(word.partition("=")[0].lstrip("-"), names)
        return f"unknown option {word!r}{f' (did you mean {names[close[0]]!r}?)' if close else ''}"
    return message.removeprefix("argument ")

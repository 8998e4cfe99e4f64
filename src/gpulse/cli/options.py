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
    A `many` argument takes all the words that are left; a `many` option takes a list, separated by commas, and may be repeated:
    all its values count. Of any other option, the last value counts.
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

GPU = Option("--gpu", "--id", "-i", name="gpu", value="LIST", parse=some_words, many=True, complete="gpus",
             help="GPUs to use: index, range (0-3), UUID prefix, PCI bus id, `visible` for CUDA_VISIBLE_DEVICES, `job` "
                  "for those of this Slurm job, or `all` (default: all; inside a Slurm job those of the job, except for "
                  "query and smi)")  # fmt: skip
SOURCE = Option("--source", value="SOURCE", complete=SOURCES, open=True,
                help=f"Where to read from: auto, {', '.join(VENDORS)}, demo or replay:FILE[@START][*SPEED] "
                     f"(replay:- for standard input); {', '.join(RECORDED[:-1])} and {RECORDED[-1]} read a recorded machine "
                     "(default: $GPULSE_SOURCE, else auto)")  # fmt: skip
DEMO = Option("--demo", value="MACHINE", default=False, optional="h100x8", complete=("h100x8", "mixed"),
              help="Use a simulated machine: 8 GPUs (h100x8) or several vendors (mixed); same as --source demo. "
                   "Nothing that this machine keeps is read or changed (default: h100x8)")  # fmt: skip
DEMO_PAST = Option("--demo", help="Use the past of a simulated machine")
DEMO_FLEET = Option("--demo", help="Show a simulated fleet of four machines")
JSON = Option("--json", help="Print JSON")
DEMO_UNUSED = Option("--demo", help="Accepted as by every verb; this one reads no machine")
DEMO_REFUSED = Option("--demo", help="Refused: programs of the simulated machine do not run")
HISTORY = Option("--history", value="FILE", complete="files", help="History file to read (default: this machine's)")
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
    else:
        _CommandLine(verb, arguments).read(list(argv))
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
    if closed := _closed(option):
        return word in closed
    return not (word.startswith("-") or word in stops)


class _CommandLine:
    """The words of a verb while they are read; argparse would take 8 ms at start, and needed help with half of what is special here."""

    def __init__(self, verb: Verb, arguments: Arguments) -> None:
        self._verb = verb
        self._arguments = arguments
        self._positional = [option for option in verb.options if option.positional]
        self._flags = {flag: option for option in verb.options if not option.positional for flag in option.flags}
        self._lists: dict[str, str] = {}  # the values of each list so far, separated by commas

    def read(self, words: list[str]) -> None:
        """Read options and arguments in any order; after -- and in the command of `run` there are no options."""
        command = any(option.rest for option in self._positional)
        found: list[str] = []
        while words:
            word = words.pop(0)
            if self._is_option(word) and word != "--":
                self._take(word, words)
                continue
            found += [] if word == "--" else [word]
            if word == "--" or command:
                found += words
                break
        self._place(found)

    def _is_option(self, word: str) -> bool:
        """Return whether a word is an option and not a value: a negative number, or a text that begins with a dash."""
        if word.partition("=")[0] in self._flags or word[:2] in self._flags:
            return True
        dashed = word.startswith("-") and word != "-" and " " not in word
        return dashed and not word[1:].replace(".", "", 1).isdecimal()

    def _take(self, word: str, words: list[str]) -> None:
        """Take an option, and its value from the words that follow."""
        flag, equals, value = word.partition("=")
        if flag not in self._flags and word[:2] in self._flags:  # -n5, or several switches in one word: -pj
            flag, equals, value = word[:2], "=", word[2:]
            if not self._flags[flag].value:
                if f"-{value[0]}" not in self._flags:
                    raise self._wrong(f"unknown option '-{value[0]}' in {word!r}")
                words.insert(0, f"-{value}")
                equals = ""
        option = self._flags.get(flag)
        if option is None:
            raise self._wrong(f"unknown option {word!r}{self._hint(flag)}")
        if not option.value and equals:
            raise self._wrong(f"{flag} takes no value")
        given: Any = True if not option.value else option.optional
        if equals or (option.value and words and self._is_value(option, words[0])):
            given = self._value(option, value if equals else words.pop(0))
        elif given is None:
            raise self._wrong(f"{'/'.join(option.flags)}: expected one argument")
        setattr(self._arguments, option.name, given)

    def _value(self, option: Option, text: str) -> Any:
        """Return the value of an option: of a list, all that were given so far."""
        given = _converted(option, text)  # alone first, so that an error quotes only this one
        if not option.many:
            return given
        before = self._lists.get(option.name)
        self._lists[option.name] = text if before is None else f"{before},{text}"
        return given if before is None else _converted(option, self._lists[option.name])

    def _is_value(self, option: Option, word: str) -> bool:
        """Return whether the word after an option is its value: an optional one from a list is, if it could not be an argument."""
        if option.dashed:
            return True
        closed = _closed(option) if option.optional is not None and self._positional else ()
        return not self._is_option(word) and (not closed or word in closed)

    def _place(self, words: list[str]) -> None:
        """Hand the words that are no options to the arguments of the verb."""
        for option in self._positional:
            count = len(words) if option.rest or option.many else 1
            taken = [option.parse(word) if option.parse is not None else word for word in words[:count]]
            words = words[count:]
            if taken:
                setattr(self._arguments, option.name, taken if option.rest or option.many else taken[0])
        if words:
            raise self._wrong(f"unexpected argument {words[0]!r}")

    def _hint(self, flag: str) -> str:
        from ..model.select import nearest

        names = {known.lstrip("-"): known for known in self._flags}  # dashes would make all options similar
        close = nearest(flag.lstrip("-"), names)
        return f" (did you mean {names[close[0]]!r}?)" if close else ""

    def _wrong(self, message: str) -> UsageError:
        return UsageError(f"{self._verb.name}: {message}", f"see `gpulse {self._verb.name} --help`.")


def _closed(option: Option) -> tuple[str, ...]:
    """Return the only words that an option takes; nothing if it takes others, too."""
    return option.complete if isinstance(option.complete, tuple) and not option.open else ()


def _converted(option: Option, text: str) -> Any:
    """Return the value of an option; raise UsageError, with the name of the option, if it is wrong."""
    closed = _closed(option)
    if closed and text not in closed:
        from ..model.select import did_you_mean

        message = f"{option.flags[0]}: unknown value {text!r}{did_you_mean(text, closed)}"
        raise UsageError(message, f"choose one of {', '.join(closed)}.")
    try:
        return option.parse(text) if option.parse is not None else text
    except UsageError as error:
        named = error.message if option.flags[0] in error.message else f"{option.flags[0]}: {error.message}"
        raise UsageError(named, error.remedy) from None

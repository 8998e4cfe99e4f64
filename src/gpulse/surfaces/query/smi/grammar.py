"""nvidia-smi's command line: words to a request, or the failure nvidia-smi would end with."""

from __future__ import annotations

from . import failure
from .refusal import CHANGES, INSTEAD, changes_state, unknown_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .failure import SmiExit

QUERIES = (
    "--query-gpu", "--query-compute-apps", "--query-accounted-apps", "--query-supported-clocks",
    "--query-retired-pages", "--query-remapped-rows",
)  # fmt: skip
_SHORT = {
    "-i": "--id", "-l": "--loop", "-lms": "--loop-ms", "-f": "--filename", "-d": "--display", "-q": "--query",
    "-a": "--query", "-x": "--xml-format", "-u": "--unit", "-L": "--list-gpus", "-B": "--list-excluded-gpus",
    "--list-blacklist-gpus": "--list-excluded-gpus", "-h": "--help", "-col": "--columns", "-eow": "--error-on-warning",
    "--query-apps": "--query-compute-apps", "-V": "--version",
}  # fmt: skip
_VALUED = frozenset({"--id", "--loop-ms", "--filename", "--display", "--format", "--debug", *QUERIES})
_SWITCHES = frozenset({
    "--query", "--xml-format", "--dtd", "--unit", "--list-gpus", "--list-excluded-gpus", "--help", "--columns",
    "--version", "--error-on-warning", *(f"--help-{query[2:]}" for query in QUERIES),
})  # fmt: skip
COMMANDS = frozenset({
    "dmon", "pmon", "topo", "nvlink", "mig", "vgpu", "clocks", "compute-policy", "boost-slider", "conf-compute", "encodersessions",
})  # fmt: skip
_OTHERS = frozenset({
    *INSTEAD, "drain", "c2c", "fbcsessions", "power-hint", "base-clocks", "gpm", "pci", "power-smoothing", "power-profiles", "prm",
    "gpu-reset",
})  # fmt: skip
_USUAL_LOOP = 5.0


class SmiRequest:
    """What was asked: `command` is a subcommand or empty, `given` the options by their long name with their values."""

    __slots__ = ("command", "given", "rest")

    def __init__(self, command: str = "", given: dict[str, str] | None = None, rest: Sequence[str] = ()) -> None:
        self.command = command
        self.given = given or {}
        self.rest = tuple(rest)

    def __contains__(self, name: str) -> bool:
        return name in self.given

    def get(self, name: str) -> str | None:
        """Return the value of an option, or None where it was not given."""
        return self.given.get(name)

    @property
    def query(self) -> str:
        """The --query-* option that was given, or nothing."""
        return next((name for name in QUERIES if name in self.given), "")

    @property
    def ids(self) -> list[str] | None:
        """The words after -i, or None for every GPU."""
        text = self.get("--id")
        return None if text is None else [word.strip() for word in text.split(",") if word.strip()]

    @property
    def interval(self) -> float | None:
        """Seconds between two answers, or None for a single one; raise SmiExit for one that is not above 0."""
        if (text := self.get("--loop-ms")) is not None:
            return _interval(text, 1000)
        text = self.get("--loop")
        return None if text is None else _interval(text, 1) if text else _USUAL_LOOP


def parse(words: Sequence[str]) -> SmiRequest:
    """Return the request; raise SmiExit as nvidia-smi would end."""
    if words and words[0] in COMMANDS:
        return SmiRequest(words[0], rest=words[1:])
    if words and words[0] in _OTHERS:
        raise unknown_command(words)
    given: dict[str, str] = {}
    at = 0
    while at < len(words):
        at = _take(words, at, given)
    request = SmiRequest(given=given)
    _check(request)
    return request


def _take(words: Sequence[str], at: int, given: dict[str, str]) -> int:
    """Take the option at a place and return the place behind it."""
    word = words[at]
    flag, equals, value = word.partition("=")
    if flag in CHANGES:
        if CHANGES[flag] and not equals and at + 1 == len(words):
            raise failure.without_value(flag)
        raise changes_state(words)
    name = _SHORT.get(flag, flag)
    if name == "--loop":
        if not equals and at + 1 < len(words) and not words[at + 1].startswith("-"):
            value, at = words[at + 1], at + 1
        given[name] = value
    elif name in _VALUED:
        if not equals:
            if at + 1 == len(words):
                raise failure.without_value(flag)
            value, at = words[at + 1], at + 1
        given[name] = value
    elif name in _SWITCHES and not equals:
        given[name] = ""
    else:
        raise failure.unrecognized(word, asked=any(key.startswith("--query") for key in given))
    return at + 1


def _check(request: SmiRequest) -> None:
    """Raise SmiExit for options that do not go together."""
    if "--help" in request or "--version" in request:
        return
    if sum(name in request for name in QUERIES) > 1:
        raise failure.SmiExit("Only one --query-* switch can be used at a time.", failure.INVALID)
    if "--list-gpus" in request and "--id" in request:
        raise failure.misplaced("-i")
    if "--query" in request or request.query or "--list-gpus" in request:
        return
    if "--xml-format" in request:
        raise _combination("-x/--xml-format", "an XML query")
    if "--display" in request:
        raise _combination("-d/--display", "a filtered query")
    if (form := request.get("--format")) is not None:
        raise failure.unrecognized(f"--format={form}", asked=False)


def _combination(option: str, query: str) -> SmiExit:
    return failure.SmiExit(
        f"Invalid combination of input arguments. Specify -q/--query and {option} to run {query}. "
        " Please run 'nvidia-smi -h' for help.\n",
        failure.INVALID,
    )


def _interval(text: str, per_second: int) -> float:
    """Read an interval; nvidia-smi takes what is no number for its usual one."""
    try:
        seconds = float(text) / per_second
    except ValueError:
        return _USUAL_LOOP
    if not 0 < seconds < 1e9:
        raise failure.SmiExit(
            "Provided [-l(ms) | --loop(-ms)=] value is incorrect. Loop frequency must be greater than 0.\n",
            failure.INVALID,
        )
    return seconds

"""nvidia-smi's command line: words to a request, or the failure nvidia-smi would end with; and the options of its subcommands."""

from __future__ import annotations

from ....value import Value
from . import failure
from .failure import CHANGES, INVALID, SmiExit
from .handover import READING, Unimplemented, changes_state, refused, unimplemented

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..scroll import DeviceScroll

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
_LISTS = frozenset({"--id", "--display", "--gpu-instance-id", "--compute-instance-id", *QUERIES})
_VALUED = frozenset({"--id", "--loop-ms", "--filename", "--display", "--format", "--debug", *QUERIES})
_SWITCHES = frozenset({
    "--query", "--xml-format", "--dtd", "--unit", "--list-gpus", "--list-excluded-gpus", "--help", "--columns",
    "--version", "--error-on-warning", *(f"--help-{query[2:]}" for query in QUERIES),
})  # fmt: skip
_USUAL_LOOP = 5.0


class GivenOptions:
    """Options that were given: `given` has them by their long names, with their values."""

    def __init__(self, given: dict[str, str]) -> None:
        self.given = given

    def __contains__(self, name: str) -> bool:
        return name in self.given

    def get(self, name: str) -> str | None:
        """Return the value of an option, or None where it was not given."""
        return self.given.get(name)

    @property
    def ids(self) -> list[str] | None:
        """The words after -i, or None for every GPU."""
        text = self.get("--id")
        return None if text is None else [word.strip() for word in text.split(",") if word.strip()]


def put(given: dict[str, str], name: str, value: str) -> None:
    """Take a value of an option; a list may be repeated, and all its values count."""
    given[name] = f"{given[name]},{value}" if name in given and name in _LISTS else value


class SmiRequest(GivenOptions):
    """What was asked: `command` is a subcommand or empty, `rest` the words behind it."""

    def __init__(self, command: str = "", given: dict[str, str] | None = None, rest: Sequence[str] = ()) -> None:
        super().__init__(given or {})
        self.command = command
        self.rest = rest

    @property
    def query(self) -> str:
        """The --query-* option that was given, or nothing."""
        return next((name for name in QUERIES if name in self.given), "")

    @property
    def interval(self) -> float | None:
        """Seconds between two answers, or None for a single one; raise SmiExit for one that is not above 0."""
        if (text := self.get("--loop-ms")) is not None:
            return _interval(text, 1000)
        text = self.get("--loop")
        return None if text is None else _interval(text, 1) if text else _USUAL_LOOP


def parse(words: Sequence[str]) -> SmiRequest:
    """Return the request; raise SmiExit as nvidia-smi would end, and Unimplemented for what only nvidia-smi answers."""
    if words and words[0] in _SUBCOMMANDS:
        return SmiRequest(words[0], rest=words[1:])
    if words and words[0] in READING:
        raise unimplemented(words, READING[words[0]].split())
    if words and words[0] in ("daemon", "gpu-reset"):
        raise refused(words)
    given: dict[str, str] = {}
    at = 0
    while at < len(words):
        at = _take(words, at, given)
    request = SmiRequest(given=given)
    _check(request)
    if "--dtd" in request and "--help" not in request:
        raise Unimplemented(words)
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
        put(given, name, value)
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
    """Read an interval; nvidia-smi takes what is not a number for its usual one."""
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


class Subcommand(Value):
    """What nvidia-smi calls a command: its options by their short names, and those that gpulse does not implement.

    `changes` change the machine and are refused, `absent` only read and are handed to nvidia-smi. One that is not `alone` has an
    answer only to options; a word that is no option ends it with exit code 2 if it is `strict`, else with 0.
    """

    flags: dict[str, str]
    changes: str = ""
    absent: str = ""
    alone: bool = False
    strict: bool = True


_COMMON = {"-h": "--help", "-i": "--id"}
_SCROLL_FLAGS = {
    "-i": "--id", "-d": "--delay", "-c": "--count", "-s": "--select", "-o": "--options", "-f": "--filename",
    "-h": "--help",
}  # fmt: skip
_DEVICE_FLAGS = {"--format": "--format", "--gpm-metrics": "--gpm-metrics", "--gpm-options": "--gpm-options"}
_SUBCOMMANDS = {
    "dmon": Subcommand({**_SCROLL_FLAGS, **_DEVICE_FLAGS}, alone=True, strict=False),
    "pmon": Subcommand(_SCROLL_FLAGS, alone=True, strict=False),
    "topo": Subcommand({
        "-m": "--matrix", "-mp": "--matrix_pci", "-i": "--id", "-c": "--cpu", "-n": "--nearest_gpus", "-p": "--gpu_path",
        "-p2p": "--p2pstatus", "-C": "--get-numa-id-of-nearby-cpu", "-M": "--get-numa-id-of-nearby-mem",
        "-gnid": "--gpu-numa-id", "-h": "--help"}),
    "nvlink": Subcommand({
        **_COMMON, "-l": "--link", "-s": "--status", "-c": "--capabilities", "-p": "--pcibusid", "-R": "--remotelinkinfo",
        "-e": "--errorcounters", "-gt": "--getthroughput"},
        changes="-sc --setcontrol -r --resetcounters -re --reseterrorcounters -sLowPwrThres --setLowPowerThreshold -sBwMode "
                "--setBandwidthMode -sLWidth --setLinkWidth",
        absent="-gc --getcontrol -g --getcounters -ec --crcerrorcounters -gLowPwrInfo --getLowPowerInfo -cBridge --checkBridge "
               "-gBwMode --getBandwidthMode -info --info"),
    "mig": Subcommand({
        **_COMMON, "-gi": "--gpu-instance-id", "-ci": "--compute-instance-id", "-lgip": "--list-gpu-instance-profiles",
        "-lgi": "--list-gpu-instances", "-lci": "--list-compute-instances"},
        changes="-cgi --create-gpu-instance -dgi --destroy-gpu-instance -cci --create-compute-instance -dci "
                "--destroy-compute-instance -C --default-compute-instance",
        absent="-lgipp --list-gpu-instance-possible-placements -lcip --list-compute-instance-profiles -lcipp "
               "--list-compute-instance-possible-placements"),
}  # fmt: skip
# Options that limit an answer and ask for none, and those that take a value.
_LIMITS = frozenset({"--help", "--id", "--link", "--gpu-instance-id", "--compute-instance-id"})
_WITH_VALUE = (_LIMITS - {"--help"}) | {
    "--delay", "--count", "--select", "--options", "--filename", "--format", "--gpm-metrics", "--gpm-options", "--cpu",
    "--nearest_gpus", "--p2pstatus", "--getthroughput",
}  # fmt: skip


class Options(GivenOptions):
    """The options given to a subcommand."""

    def __init__(self, command: str, words: Sequence[str]) -> None:
        """Read the words; raise SmiExit for what is refused and for a word that is no option, Unimplemented for the help."""
        super().__init__({})
        self._command = _SUBCOMMANDS[command]
        flags, whole = {word.partition("=")[0] for word in words}, [command, *words]
        if not flags.isdisjoint(self._command.changes.split()):
            raise changes_state(whole)
        if not flags.isdisjoint(self._command.absent.split()):
            known = (*self._command.flags, *self._command.flags.values(), *self._command.absent.split())
            raise unimplemented(whole, known)
        at = 0
        while at < len(words):
            at = self._take(words, at)
        if "--help" in self.given or not (self._command.alone or self.given.keys() - _LIMITS):
            options = " ".join(self._command.flags)
            raise Unimplemented(whole, f"has no help for {command} (its options: {options})")

    def positive(self, name: str, complaint: str) -> int | None:
        """Return a whole number above 0, or None where it was not given; raise SmiExit with the complaint otherwise.

        nvidia-smi's exit code for a wrong value is 0.
        """
        text = self.get(name)
        if text is not None and (not text.isdecimal() or len(text) > 9 or int(text) < 1):
            raise SmiExit(complaint, 0)
        return None if text is None else int(text)

    def _take(self, words: Sequence[str], at: int) -> int:
        flag, equals, value = words[at].partition("=")
        name = self._command.flags.get(flag, flag)
        if name not in self._command.flags.values():
            raise SmiExit(f'Option "{words[at]}" is not recognized.', INVALID if self._command.strict else 0)
        if name in _WITH_VALUE and not equals:
            if at + 1 == len(words):
                raise SmiExit(f'Option "{words[at]}" is missing its value.', 0)
            value, at = words[at + 1], at + 1
        put(self.given, name, value)
        return at + 1


def _gpm(options: Options, words: Sequence[str]) -> list[int]:
    """Return the numbers after --gpm-metrics; raise Unimplemented for others than gpulse reads, and for the level of MIG instances."""
    from ..scroll import GPM

    asked = [word for word in (options.get("--gpm-metrics") or "").split(",") if word]
    for word in asked:
        if not word.isdecimal() or len(word) > 3 or int(word) not in GPM:
            known = ", ".join(map(str, GPM))
            raise Unimplemented(words, f"reads the GPM metrics {known}, not {word!r}")
    if (options.get("--gpm-options") or "d") != "d":
        raise Unimplemented(words, "reads GPM metrics of devices only")
    return list(dict.fromkeys(map(int, asked)))


def scroll_view(command: str, words: Sequence[str]) -> DeviceScroll:
    """Return the view that dmon or pmon was asked for; raise SmiExit as nvidia-smi would end."""
    from ..scroll import DeviceScroll, ProcessScroll

    options = Options(command, words)
    interval = options.positive("--delay", "Collection delay/interval should be between 1 second and 600 seconds")
    count = options.positive("--count", "Invalid value for number of samples to be displayed")
    groups, stamps = options.get("--select"), (options.get("--options") or "").upper()
    if command == "dmon":
        forms = (options.get("--format") or "").split(",")
        view = DeviceScroll((groups or "puc").replace("a", ""), stamps, forms, _gpm(options, [command, *words]))
    else:
        view = ProcessScroll(groups or "u", stamps)
    if not view.columns:
        raise SmiExit("Failed to find any metric to display\nFailed to process command line \n", failure.OTHER)
    view.ids, view.interval, view.count, view.filename = options.ids, interval or 1, count, options.get("--filename")
    return view

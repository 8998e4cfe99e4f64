"""nvidia-smi's command line: words to a request, or the failure nvidia-smi would end with; and the options of its subcommands."""

from __future__ import annotations

from ....value import Value
from . import failure
from .failure import CHANGES, INSTEAD, INVALID, SmiExit, changes_state, unknown_command

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
_OTHERS = frozenset({
    *INSTEAD, "drain", "c2c", "fbcsessions", "power-hint", "base-clocks", "gpm", "pci", "power-smoothing", "power-profiles", "prm",
    "gpu-reset",
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
    """What nvidia-smi calls a command: its options by their short names, and those that gpulse refuses.

    `changes` change the machine, `absent` gpulse does not have, `unreadable` NVML has no call for. One that is not `alone` has an answer
    only to options; a word that is no option ends it with exit code 2 if it is `strict`, else with the usage and 0.
    """

    about: str
    flags: dict[str, str]
    changes: str = ""
    absent: str = ""
    unreadable: str = ""
    alone: bool = False
    strict: bool = True


_COMMON = {"-h": "--help", "-i": "--id"}
_SCROLL_FLAGS = {
    "-i": "--id", "-d": "--delay", "-c": "--count", "-s": "--select", "-o": "--options", "-f": "--filename",
    "-h": "--help",
}  # fmt: skip
_DEVICE_FLAGS = {"--format": "--format", "--gpm-metrics": "--gpm-metrics", "--gpm-options": "--gpm-options"}
_SUBCOMMANDS = {
    "dmon": Subcommand(
        "Display GPU statistics in scrolling columns.", {**_SCROLL_FLAGS, **_DEVICE_FLAGS}, alone=True, strict=False),
    "pmon": Subcommand("Display process statistics in scrolling columns.", _SCROLL_FLAGS, alone=True, strict=False),
    "topo": Subcommand("Display how GPUs, CPUs and network devices are connected.", {
        "-m": "--matrix", "-mp": "--matrix_pci", "-i": "--id", "-c": "--cpu", "-n": "--nearest_gpus", "-p": "--gpu_path",
        "-p2p": "--p2pstatus", "-C": "--get-numa-id-of-nearby-cpu", "-M": "--get-numa-id-of-nearby-mem",
        "-gnid": "--gpu-numa-id", "-h": "--help"}, alone=True),
    "nvlink": Subcommand("Display NVLink information.", {
        **_COMMON, "-l": "--link", "-s": "--status", "-c": "--capabilities", "-p": "--pcibusid", "-R": "--remotelinkinfo",
        "-e": "--errorcounters", "-gt": "--getthroughput"},
        changes="-sc --setcontrol -r --resetcounters -re --reseterrorcounters -sLowPwrThres --setLowPowerThreshold -sBwMode "
                "--setBandwidthMode -sLWidth --setLinkWidth"),
    "mig": Subcommand("List MIG profiles and instances.", {
        **_COMMON, "-gi": "--gpu-instance-id", "-ci": "--compute-instance-id", "-lgip": "--list-gpu-instance-profiles",
        "-lgi": "--list-gpu-instances", "-lci": "--list-compute-instances"},
        changes="-cgi --create-gpu-instance -dgi --destroy-gpu-instance -cci --create-compute-instance -dci "
                "--destroy-compute-instance -C --default-compute-instance",
        absent="-lgipp --list-gpu-instance-possible-placements -lcip --list-compute-instance-profiles -lcipp "
               "--list-compute-instance-possible-placements"),
    "clocks": Subcommand("Query clock information.", _COMMON, unreadable="--sync-boost-list",
        changes="--sync-boost-add --sync-boost-remove -som --sparse-operation-mode"),
    "compute-policy": Subcommand("List the compute policies.", {**_COMMON, "-l": "--list"}, changes="--set-timeslice"),
    "boost-slider": Subcommand("List the boost sliders.", {**_COMMON, "-l": "--list"}, changes="--vboost"),
    "conf-compute": Subcommand("Display the state of confidential computing.", {
        **_COMMON, "-gc": "--get-cpu-caps", "-gg": "--get-gpus-caps", "-d": "--get-devtools-mode", "-e": "--get-environment",
        "-f": "--get-cc-feature", "-gm": "--get-mem-size-info", "-grs": "--get-gpus-ready-state",
        "-gkr": "--get-key-rotation-threshold-info", "-mgm": "--get-multigpu-mode", "-q": "--query-conf-compute"},
        changes="-sm --set-unprotected-mem-size -srs --set-gpus-ready-state -skr --set-key-rotation-max-attacker-advantage"),
    "encodersessions": Subcommand("Display the video encoder sessions.", {**_COMMON, "-l": "--loop"}, alone=True),
}  # fmt: skip
COMMANDS = frozenset({*_SUBCOMMANDS, "vgpu"})
# Options that limit an answer and ask for none, and those that take a value.
_LIMITS = frozenset({"--help", "--id", "--link", "--loop", "--gpu-instance-id", "--compute-instance-id"})
_WITH_VALUE = (_LIMITS - {"--help"}) | {
    "--delay", "--count", "--select", "--options", "--filename", "--format", "--gpm-metrics", "--gpm-options", "--cpu",
    "--nearest_gpus", "--p2pstatus", "--getthroughput",
}  # fmt: skip
# What an option does, under every command that has it.
_MEANINGS = {
    "--help": "Display help information",
    "--id": "GPUs to use: index, UUID or PCI bus ID, separated by commas",
    "--list": "List the current values",
    "--loop": "Seconds between updates, until Ctrl-C is pressed",
    "--delay": "Seconds between samples, from 1 to 600 (default: 1)",
    "--count": "Number of samples (default: until Ctrl-C is pressed)",
    "--select": "Groups of columns to display",
    "--options": "Add the date (D) or the time (T) to each line",
    "--filename": "File to write to",
    "--format": "csv, nounit, noheader",
    "--gpm-metrics": "GPM metrics to add (Hopper and later), separated by commas: 1 graphics, 2 SM, 3 SM occupancy, 4 integer, "
    "5 tensor, 10 DRAM, 11 FP64, 12 FP32, 13 FP16, 20 PCIe TX, 21 PCIe RX, 60 NVLink RX, 61 NVLink TX",
    "--gpm-options": "Level of the GPM metrics: d (device)",
    "--matrix": "Display how all devices are connected",
    "--matrix_pci": "Display how all devices are connected over PCIe",
    "--cpu": "Display the GPUs near a CPU",
    "--nearest_gpus": "Display the GPUs that are near the one given with -i, by level: 0 (same board) to 5 (other NUMA node)",
    "--gpu_path": "Display the path between the two GPUs given with -i",
    "--p2pstatus": "Display peer access: r (read), w (write), n (NVLink), a (atomics) or p (PCIe)",
    "--get-numa-id-of-nearby-cpu": "Display the NUMA node of the CPU nearest to the GPU given with -i",
    "--get-numa-id-of-nearby-mem": "Display the NUMA node of the memory nearest to the GPU given with -i",
    "--gpu-numa-id": "Display the NUMA node of the memory of the GPU given with -i",
    "--link": "Display only this link",
    "--status": "Display the state and speed of each link",
    "--capabilities": "Display what each link can do",
    "--pcibusid": "Display the PCI bus ID at the other end of each link",
    "--remotelinkinfo": "Display the device and link at the other end of each link",
    "--errorcounters": "Display the error counters of each link",
    "--getthroughput": "Display the data moved over each link: d (payload) or r (with protocol)",
    "--gpu-instance-id": "GPU instances to use, separated by commas",
    "--compute-instance-id": "Compute instances to use, separated by commas",
    "--list-gpu-instance-profiles": "List the profiles of GPU instances",
    "--list-gpu-instances": "List the GPU instances",
    "--list-compute-instances": "List the compute instances",
    "--get-cpu-caps": "Display what the CPU can do",
    "--get-gpus-caps": "Display whether the GPUs are capable of it",
    "--get-devtools-mode": "Display whether developer tools are allowed",
    "--get-environment": "Display the environment",
    "--get-cc-feature": "Display whether it is on",
    "--get-mem-size-info": "Display the protected and unprotected memory of each GPU",
    "--get-key-rotation-threshold-info": "Display when keys are changed",
    "--get-multigpu-mode": "Display how several GPUs are protected",
    "--get-gpus-ready-state": "Display whether the GPUs accept work",
    "--query-conf-compute": "Display all of this",
}


class Options(GivenOptions):
    """The options given to a subcommand."""

    def __init__(self, command: str, words: Sequence[str]) -> None:
        """Read the words; raise SmiExit for -h, for what is refused and for a word that is no option."""
        super().__init__({})
        self._name = command
        self._command = _SUBCOMMANDS[command]
        flags = {word.partition("=")[0] for word in words}
        for refused, refusal in (
            (self._command.changes, failure.changes_state),
            (self._command.absent, unknown_command),
            (self._command.unreadable, failure.unreadable),
        ):
            if not flags.isdisjoint(refused.split()):
                raise refusal([command, *words])
        at = 0
        while at < len(words):
            at = self._take(words, at)
        if "--help" in self.given or not (self._command.alone or self.given.keys() - _LIMITS):
            raise SmiExit(self.usage(), 0)

    def positive(self, name: str, complaint: str) -> int | None:
        """Return a whole number above 0, or None where it was not given; raise SmiExit with the complaint otherwise."""
        text = self.get(name)
        if text is not None and (not text.isdecimal() or len(text) > 9 or int(text) < 1):
            raise self.complain(complaint)
        return None if text is None else int(text)

    def complain(self, text: str) -> SmiExit:
        """Return the failure for a wrong value: the sentence and the usage; nvidia-smi's exit code for it is 0."""
        return SmiExit(f"{text}\n{self.usage()}", 0)

    def usage(self) -> str:
        """Return the options in one list."""
        lines = [f"\n    {self._name} -- {self._command.about}\n"]
        lines += [f"    Usage: nvidia-smi {self._name} [options]\n", "    Options include:"]
        for short, long in self._command.flags.items():
            lines.append(f"    [{short if short != long else ''} | {long}]: {_MEANINGS[long]}")
        return "\n".join([*lines, ""])

    def _take(self, words: Sequence[str], at: int) -> int:
        flag, equals, value = words[at].partition("=")
        name = self._command.flags.get(flag, flag)
        if name not in self._command.flags.values():
            if self._command.strict:
                raise SmiExit(f'Option "{words[at]}" is not recognized.', INVALID)
            raise self.complain(f'Option "{words[at]}" is not recognized.')
        if name in _WITH_VALUE and not equals:
            if at + 1 == len(words):
                raise self.complain(f'Option "{words[at]}" is missing its value.')
            value, at = words[at + 1], at + 1
        put(self.given, name, value)
        return at + 1


def _gpm(options: Options, words: Sequence[str]) -> list[int]:
    """Return the numbers after --gpm-metrics; raise SmiExit for one that gpulse does not read, and for the level of MIG instances."""
    from ..scroll import GPM

    asked = [word for word in (options.get("--gpm-metrics") or "").split(",") if word]
    for word in asked:
        if not word.isdecimal() or len(word) > 3 or int(word) not in GPM:
            known = ", ".join(map(str, GPM))
            raise failure.absent(f"reads the GPM metrics {known}, not {word!r}", words)
    if (options.get("--gpm-options") or "d") != "d":
        raise failure.absent("reads GPM metrics of devices only", words)
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

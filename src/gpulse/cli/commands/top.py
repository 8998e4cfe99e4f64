"""`gpulse top`: the live screen."""

from __future__ import annotations

from ..options import COMMON, Arguments, Option, Verb, seconds
from ..session import open_sampler, show_screen

GROUPS = ("user", "container", "job")


def run(arguments: Arguments) -> int:
    """Show the live screen, or write one line per sample if stdout is not a terminal."""
    if arguments.tree and arguments.group:
        from ...errors import UsageError

        raise UsageError("top: --tree and --group cannot be combined;", "choose one.")

    show_screen(arguments, lambda wanted: open_sampler(arguments, wanted), arguments.interval)
    return 0


def _columns(text: str) -> list[tuple[str, bool]]:
    """Return process columns, each with whether the largest comes first."""
    return [_column(word) for word in text.split(",")]


def _column(text: str) -> tuple[str, bool]:
    from ...model.catalog import PROCESS_METRICS
    from ...model.metric import Number
    from ...model.process_filter import SHORT_NAMES
    from ...settings.table import COLUMNS

    name = text.removeprefix("-")
    key = SHORT_NAMES.get(name, name)
    if key not in COLUMNS:
        from ...errors import UsageError
        from ...model.select import did_you_mean

        raise UsageError(
            f"unknown column {name!r}{did_you_mean(name, COLUMNS)};", f"the columns are {', '.join(COLUMNS)}."
        )
    amount = key not in ("gpu", "pid", "parent") and isinstance(PROCESS_METRICS[key], Number)
    return key, amount != text.startswith("-")


def _filter(text: str) -> str:
    from ...model.process_filter import parse_filter

    return parse_filter(text).text


VERB = Verb(
    "top",
    (
        Option("--interval", "-n", value="SECONDS", parse=seconds("--interval", 0.1, 3600),
               help="Time between samples, in seconds (default: the saved setting, else 1)"),
        Option("--sort", "-s", value="COLUMNS", parse=_columns, many=True, dashed=True, complete="columns",
               help="Columns to sort processes by, the first one first: amounts largest first, names, PIDs and GPUs in their "
                    "order; -COLUMN reverses (default: the saved setting, else memory_used)"),
        Option("--filter", "-f", value="FILTER", parse=_filter, dashed=True,
               help="Show only the processes that match all words of FILTER, for example 'user:ada gpu:0-3 mem>1G'"),
        Option("--tree", "-t", help="Show processes below the processes that started them"),
        Option("--group", "-g", value="OWNER", complete=GROUPS, help="Group processes by user, container or job"),
        Option("--readonly", help="Disable sending signals to processes"),
        *COMMON,
    ),
    run,
    (
        ("gpulse top", "press ? for the keys"),
        ("gpulse top --filter user:ada --sort sm", "show the processes of one user, busiest first"),
        ("gpulse top --sort user,mem", "sort by user, then by memory"),
        ("gpulse top --source replay:run.ndjson.gz", "show a recording"),
        ("ssh -n node7 gpulse record -o - | gpulse top --source replay:-", "show another machine"),
    ),
)  # fmt: skip

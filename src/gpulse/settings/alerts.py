"""The [alerts] table: the keys of every built-in rule, as the rules themselves declare them, with a sentence for each."""

from __future__ import annotations

from ..analysis.alerts import BUILT_IN, ON_REQUEST
from ..analysis.alerts.rule import duration, size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

# key: default, what it means
OWN: dict[str, tuple[Any, str]] = {
    "enable": ([name for name in BUILT_IN if name not in ON_REQUEST], "Built-in rules that are on"),
    "disable": ([], "Built-in rules that are off"),
    "log": (True, "Print each alert on stderr"),
    "bell": (False, "Ring the terminal: true, or a terminal such as /dev/pts/3"),
    "group_wait": ("5s", "How long to wait for more alerts of a rule, to send them as one message"),
    "repeat": (0, "Time after which an alert that lasts is sent again unless it is acknowledged; 0 for never"),
    "quiet": (
        [],
        'Hours in which only critical alerts are sent, such as ["22:00-07:00", "Sat,Sun"]; the rest follows after them',
    ),
    "maintenance": ([], 'Hours in which nothing is sent, such as ["Sun 02:00-04:00"]'),
    "limit": (30, "Messages per hour and delivery; 0 for no limit"),
    "link": (
        "",
        "Address of the page for links in messages, if others reach it by another one than `gpulse serve` prints",
    ),
}
LISTS: dict[str, tuple[str, dict[str, Any]]] = {  # tables that may be there several times, with an example of each
    "rule": ("Your own rules: a metric above or below a value", {"name": "busy", "metric": "utilization", "above": 95, "for": "10m"}),
    "webhook": ("Addresses to send alerts to", {"url": "https://hooks.example.org/gpulse", "shape": "json"}),
    "command": ("Commands to run on alerts", {"run": ["notify-send", "gpulse"]}),
    "mail": ("Addresses to mail alerts to; [mail] says how", {"to": ["ops@example.org"]}),
}  # fmt: skip
_HELP = {
    "for": "How long it must last before the alert fires",
    "clear_for": "How long it must be over before the alert clears",
    "above": "Value at which the alert fires",
    "clear": "Value at which the alert clears",
    "margin": "Degrees it must cool down before the alert clears",
    "memory": "GPU memory that a process must hold to count",
    "cpu": "CPU usage, in percent of a core, above which a process counts as working",
    "over": "Time over which memory must grow",
    "rise": "Amount by which memory must grow",
    "used": "Time a GPU must have been in use before it counts as freed",
    "stalled.used": "Time a process must have used a GPU before it can count as stalled",
    "stalled.for": "How long the GPU must be idle before the alert fires",
    "job_finished.for": "Time a process must have run to be reported when it ends",
    "idle_allocation.for": "How long a process must do nothing before the alert fires",
    "allocation_unused.for": "How long a GPU that a Slurm job has must be unused before the alert fires",
    "serving_queue.above": "Number of waiting requests at which the alert fires",
    "serving_first_token.above": "Seconds to the first token (95th percentile) at which the alert fires",
    "serving_errors.above": "Failed requests per second at which the alert fires",
    "serving_stuck.above": "Time without a token, with requests, at which the alert fires",
    "gpu_free.for": "How long a GPU must be free before the alert fires",
    "xid.clear_for": "Time without the same error code after which the alert clears",
    "ecc.clear_for": "Time without a new error after which the alert clears",
}
_NO_DEFAULT = {
    "hot.above": 85,
    "memory.clear": 92,
}  # these depend on the GPU or on other settings: an example for the template


class RuleSetting:
    """One key of a built-in rule; `default` as it is written in the file, None where it depends on something else."""

    __slots__ = ("default", "example", "help", "key", "rule")

    def __init__(self, rule: str, key: str, default: Any) -> None:
        self.rule = rule
        self.key = key
        self.default = default
        self.example = _NO_DEFAULT.get(f"{rule}.{key}") if default is None else default
        self.help = _HELP.get(f"{rule}.{key}") or _HELP[key]

    @property
    def name(self) -> str:
        """The name as in alerts.hot.above."""
        return f"alerts.{self.rule}.{self.key}"


def rule_settings() -> Iterator[RuleSetting]:
    """Yield the settings of all built-in rules."""
    for name, kind in BUILT_IN.items():
        for key, (reader, default) in kind.settings.items():
            yield RuleSetting(name, key, _written(reader, default))


def effective_alerts(table: Mapping[str, Any]) -> Iterator[tuple[str, Any, bool]]:
    """Yield name, value and whether the file sets it, of an [alerts] table; addresses and headers are masked."""
    for key, (default, _) in OWN.items():
        yield f"alerts.{key}", table.get(key, default), key in table
    for setting in rule_settings():
        given = table.get(setting.rule)
        there = isinstance(given, dict) and setting.key in given
        yield setting.name, given[setting.key] if there and given else setting.default, there
    for key in LISTS:
        found = table.get(key, [])
        entries = [found] if isinstance(found, dict) else found if isinstance(found, list) else []
        yield f"alerts.{key}", [_masked(entry) for entry in entries], key in table


def _masked(entry: Any) -> Any:
    """Return an entry without its secrets: the path of a webhook's address is one, and so are headers."""
    if not isinstance(entry, dict):
        return entry
    shown = dict(entry)
    if isinstance(shown.get("url"), str):
        start, _, rest = shown["url"].partition("://")
        shown["url"] = f"{start}://{rest.partition('/')[0].rpartition('@')[2]}/…"
    if isinstance(shown.get("headers"), dict):
        shown["headers"] = dict.fromkeys(shown["headers"], "…")
    return shown


def _written(reader: Any, default: float | None) -> Any:
    if default is None or reader not in (duration, size):
        return int(default) if default is not None and default == int(default) else default
    if reader is size:
        return f"{default / (1 << 30):g}GiB" if default >= 1 << 30 else f"{default / (1 << 20):g}MiB"
    return f"{default / 60:g}m" if default >= 120 and default % 60 == 0 else f"{default:g}s"

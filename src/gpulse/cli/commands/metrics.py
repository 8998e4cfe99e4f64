"""`gpulse metrics`: list the catalog."""

from __future__ import annotations

import sys

from ..options import DEMO_UNUSED, HELP, Arguments, Option, Verb
from ..output import write_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...model.metric import Metric


def run(arguments: Arguments) -> int:
    """List all metrics, or those whose key, title or help contains the word."""
    if arguments.schema:
        from ...model.codec import snapshot_schema

        return write_json(snapshot_schema(), 1)
    from ...model.catalog import GPU_METRICS, HOST_METRICS, PROCESS_METRICS, SERVER_METRICS
    from ...model.select import metric_named
    from ...sources.vendors import metric_sources

    tables = {"gpu": GPU_METRICS, "process": PROCESS_METRICS, "host": HOST_METRICS, "serving": SERVER_METRICS}
    word = (arguments.word or "").lower()
    found = {
        kind: [m for m in metrics.values() if not word or word in _all_words(m)] for kind, metrics in tables.items()
    }
    if word and not any(found.values()):
        metric_named(word)  # raises, and suggests similar names
    sources = metric_sources()
    if arguments.json:
        plain = {kind: [_plain(metric, kind, sources) for metric in metrics] for kind, metrics in found.items()}
        return write_json(plain, 1)
    widest = max(len(metric.key) for metrics in found.values() for metric in metrics)
    for kind, metrics in found.items():
        if metrics:
            sys.stdout.write(f"{kind}\n" + "".join(f"  {_line(metric, widest, kind, sources)}\n" for metric in metrics))
    return 0


def _all_words(metric: Metric) -> str:
    return " ".join((metric.key, metric.title, metric.help, *metric.smi)).lower()


def _line(metric: Metric, widest: int, kind: str, sources: dict[str, frozenset[str]]) -> str:
    smi = f" nvidia-smi: {metric.smi[0]}." if metric.smi and metric.smi[0] != metric.key else ""
    window = f" Covers: {metric.window}." if metric.window else ""
    home = ",".join(_homes(metric, kind, sources))
    return f"{metric.key:<{widest}}  {metric.unit.symbol:<4} {home:<7} {metric.help}{window}{smi}"


def _homes(metric: Metric, kind: str, sources: dict[str, frozenset[str]]) -> list[str]:
    """Return the vendors whose source reads this metric, or "derived" if gpulse computes it."""
    if kind != "gpu":
        return ["server"] if kind == "serving" else ["linux"]
    return [vendor for vendor, keys in sources.items() if metric.key in keys] or ["derived"]


def _plain(metric: Metric, kind: str, sources: dict[str, frozenset[str]]) -> dict[str, object]:
    names = ("key", "title", "kind", "cost", "group", "help", "window", "dcgm", "otel")
    plain: dict[str, object] = {name: getattr(metric, name) for name in names}
    return plain | {"unit": metric.unit.name, "nvidia_smi": list(metric.smi), "sources": _homes(metric, kind, sources)}


VERB = Verb(
    "metrics",
    (
        Option("word", value="[WORD]", complete="metrics", help="Only list metrics that mention WORD"),
        Option("--json", help="Print the catalog as JSON"),
        Option("--schema", help="Print the JSON Schema of `gpulse --json` and of recordings"),
        DEMO_UNUSED,
        HELP,
    ),
    run,
    (
        ("gpulse metrics power", "list metrics about power"),
        ("gpulse metrics --schema > gpulse.schema.json", "to validate what `gpulse --json` prints"),
    ),
)

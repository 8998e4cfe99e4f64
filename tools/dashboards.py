"""The Grafana dashboard and the Prometheus rules, made from the catalog: deploy/grafana/gpulse.json, deploy/prometheus/gpulse.rules.yml.

python -m tools.dashboards            # write them
python -m tools.dashboards --check    # exit 1 when one is not up to date
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from gpulse.model.catalog import Gpu
from gpulse.model.metric import Metric, Number
from gpulse.present.exposition import series_name
from gpulse.surfaces.exporter.families import GPU_RATES, GPU_SERIES, HOST_RATES, HOST_SERIES, SERVER_SERIES, total_name
from tools.rules import MADE, name, rules

ROOT = Path(__file__).parent.parent
# The rows of the dashboard: a title, and the groups of the catalog whose metrics it shows, a panel each.
ROWS = (
    ("Utilization", ("utilization", "engines")),
    ("Activity", ("activity",)),
    ("Memory", ("memory",)),
    ("Power", ("power",)),
    ("Thermals", ("thermal",)),
    ("Clocks", ("clocks",)),
    ("PCIe and NVLink", ("links",)),
    ("Health", ("health",)),
)
UNITS = {
    "_ratio": "percentunit",
    "_bytes": "bytes",
    "_bytes_per_second": "binBps",
    "_watts": "watt",
    "_joules": "joule",
    "_celsius": "celsius",
    "_hertz": "hertz",
    "_seconds": "s",
    "_rpm": "rotrpm",
    "_per_second": "reqps",
    "_tokens_per_second": "short",
    "_tokens_per_joule": "short",
    "": "short",
}
HERE = '{instance=~"$instance",gpu=~"$gpu"}'
WHOLE = '{instance=~"$instance",gpu=~"$gpu",mig=""}'  # or a divided GPU would count twice
HOSTS = '{instance=~"$instance"}'
LEGEND = "{{instance}} GPU {{gpu}} {{mig}}"
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
WIDE, HIGH = 24, 7


def panel(
    kind: str, title: str, queries: list[tuple[str, str]], unit: str, help: str = "", **more: Any
) -> dict[str, Any]:
    """Return a panel of (query, legend) pairs; its position is set later."""
    table = kind == "table"
    targets = [
        {
            "datasource": SOURCE,
            "expr": query,
            "legendFormat": legend,
            "refId": chr(ord("A") + at),
            **({"instant": True, "format": "table"} if table else {}),
        }
        for at, (query, legend) in enumerate(queries)
    ]
    defaults: dict[str, Any] = {"unit": unit, **more.pop("defaults", {})}
    return {
        "type": kind,
        "title": title,
        "description": help,
        "datasource": SOURCE,
        "targets": targets,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        **more,
    }


def curves(title: str, queries: list[tuple[str, str]], unit: str, help: str = "", **defaults: Any) -> dict[str, Any]:
    """Return a panel of curves."""
    options = {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi", "sort": "desc"}}
    return panel("timeseries", title, queries, unit, help, options=options, defaults=defaults)


def of_metric(metric: Metric) -> dict[str, Any]:
    """Return the panel of one metric: counters as rates, with the thresholds of the catalog."""
    base, unit = metric.unit.base, UNITS[metric.unit.suffix]
    query = f"{name(metric)}{HERE}"
    more: dict[str, Any] = {"max": 1} if metric.unit.suffix == "_ratio" and metric.high == 100 else {}
    if metric in GPU_RATES:
        query = f"rate({query}[$__rate_interval])"
    elif metric.kind == "counter":
        query = f"increase({query}[$__rate_interval])"
    steps = [("green", None), ("orange", metric.warn), ("red", metric.critical)]
    if metric.warn is not None and metric.critical is not None:
        told = [{"color": colour, "value": None if at is None else round(at * base, 6)} for colour, at in steps]
        more |= {
            "thresholds": {"mode": "absolute", "steps": told},
            "custom": {"thresholdsStyle": {"mode": "dashed"}},
        }
    return curves(metric.title, [(query, LEGEND)], unit, metric.help, min=0, **more)


def stat(title: str, query: str, unit: str, help: str) -> dict[str, Any]:
    """Return a panel of one number."""
    options = {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "none", "graphMode": "area"}
    return panel("stat", title, [(query, "")], unit, help, options=options)


def overview() -> list[dict[str, Any]]:
    """Return the numbers at the top and the table of GPUs."""
    used, total = name(Gpu.memory_used), name(Gpu.memory_total)
    lost = f"sum(1 - gpulse_gpu_up{HERE})"
    faults = f"sum(increase(gpulse_gpu_xid_errors_total{HERE}[$__range])) or vector(0)"
    return [
        stat("GPUs", f"count(gpulse_gpu_up{HERE})", "short", "GPUs that Prometheus knows."),
        stat("Lost", lost, "short", "GPUs that do not answer."),
        stat("Utilization", f"avg({name(Gpu.utilization)}{WHOLE})", "percentunit", Gpu.utilization.help),
        stat("SM active", f"avg({name(Gpu.sm_active)}{WHOLE})", "percentunit", Gpu.sm_active.help),
        stat("Memory", f"sum({used}{WHOLE}) / sum({total}{WHOLE})", "percentunit", "Share of the total memory in use."),
        stat("Power", f"sum({name(Gpu.power_draw)}{HERE})", "watt", Gpu.power_draw.help),
        stat("XIDs", faults, "short", "XID errors reported by the driver in the time range."),
        stat(
            "Oldest sample",
            f"max(time() - gpulse_last_sample_timestamp_seconds{HOSTS})",
            "s",
            "Age of the last sample.",
        ),
    ]


def tables() -> list[dict[str, Any]]:
    """Return the tables of GPUs and their owners."""
    hidden = {"excludeByName": {"Time": True, "Value": True, "__name__": True, "job": True}}
    shown = [{"id": "organize", "options": hidden}]
    info, owners = f"gpulse_gpu_info{HERE}", f"gpulse_gpu_job_info{HERE}"
    return [
        panel("table", "GPUs", [(info, "")], "short", "Identity of each GPU.", transformations=shown),
        panel(
            "table",
            "Owners",
            [(owners, "")],
            "short",
            "Owner of the process with the most memory.",
            transformations=shown,
        ),
    ]


def one_gpu() -> list[dict[str, Any]]:
    """Return the panels of one GPU, which a row repeats."""
    work = (Gpu.utilization, Gpu.sm_active, Gpu.tensor_active, Gpu.dram_active)
    memory, power = (Gpu.memory_used, Gpu.memory_total), (Gpu.power_draw, Gpu.power_limit)
    heat = (Gpu.temperature, Gpu.memory_temperature, Gpu.temperature_limit)
    return [
        curves(
            title, [(f"{name(metric)}{HERE}", f"{{{{instance}}}} {metric.title}") for metric in metrics], unit, min=0
        )
        for title, metrics, unit in (
            ("Work", work, "percentunit"),
            ("Memory", memory, "bytes"),
            ("Power", power, "watt"),
            ("Temperature", heat, "celsius"),
        )
    ]


def happenings() -> list[dict[str, Any]]:
    """Return throttling, processes, faults and gaps."""
    why = f"rate(gpulse_gpu_throttle_seconds_total{HERE}[$__rate_interval])"
    xids = f"increase(gpulse_gpu_xid_errors_total{HERE}[$__rate_interval])"
    gaps = f"sum by (instance, metric, reason) (rate(gpulse_gaps_total{HOSTS}[$__rate_interval]))"
    return [
        curves("Throttled", [(why, f"{LEGEND} {{{{reason}}}}")], "percentunit", "Share of time, by reason.", min=0),
        curves(
            "XID errors", [(xids, f"{LEGEND} XID {{{{xid}}}}")], "short", "XID errors reported by the driver.", min=0
        ),
        curves("Answers", [(f"gpulse_gpu_up{HERE}", LEGEND)], "short", "1 while the GPU answers.", min=0, max=1),
        curves(
            "Missing values",
            [(gaps, "{{instance}} {{metric}} {{reason}}")],
            "short",
            "Missing values per second.",
            min=0,
        ),
        curves("Processes", [(f"gpulse_gpu_processes{HERE}", LEGEND)], "short", "Processes on each GPU.", min=0),
        curves(
            "Memory of processes",
            [(f"gpulse_process_memory_bytes{HERE}", "{{instance}} GPU {{gpu}} {{name}} {{pid}} ({{user}})")],
            "bytes",
            "Requires gpulse serve --processes-metrics.",
            min=0,
        ),
    ]


def machine() -> list[dict[str, Any]]:
    """Return the panels of the host and of the server's own cost."""
    panels = [
        curves(
            metric.title,
            [(f"{series_name(metric, 'host')}{HOSTS}", "{{instance}}")],
            UNITS[metric.unit.suffix],
            metric.help,
            min=0,
        )
        for metric in HOST_SERIES
    ]
    for metric in HOST_RATES:
        rate = f"rate({total_name(metric, 'host')}{HOSTS}[$__rate_interval])"
        panels.append(curves(metric.title, [(rate, "{{instance}}")], "binBps", metric.help, min=0))
    cost = [
        (
            'rate(process_cpu_seconds_total{instance=~"$instance"}[$__rate_interval]) and on(instance) gpulse_up',
            "{{instance}}",
        ),
    ]
    panels.append(curves("CPU of gpulse", cost, "percentunit", "1 is one core.", min=0))
    took = [(f"gpulse_scrape_duration_seconds{HOSTS}", "{{instance}}")]
    panels.append(curves("Time to render /metrics", took, "s", min=0))
    return panels


def servers() -> list[dict[str, Any]]:
    """Return a panel for each figure of model servers."""
    return [
        curves(
            metric.title,
            [(f"{series_name(metric, 'serving')}{HOSTS}", "{{instance}} {{model}} {{endpoint}}")],
            UNITS[metric.unit.suffix],
            metric.help,
            min=0,
            **({"max": 1} if metric.unit.suffix == "_ratio" else {}),
        )
        for metric in SERVER_SERIES
    ]


def variable(word: str, label: str, query: str) -> dict[str, Any]:
    """Return a choice of labels at the top of the dashboard."""
    return {
        "type": "query",
        "name": word,
        "label": label,
        "datasource": SOURCE,
        "query": {"query": query, "refId": word},
        "definition": query,
        "refresh": 2,
        "sort": 3,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


def sections() -> list[tuple[str, list[dict[str, Any]], int, bool]]:
    """Return the rows: title, panels, panels per row, and whether the row starts collapsed."""
    shown = [
        metric
        for metric in (*GPU_SERIES, *GPU_RATES)
        if metric.cost != "static" and isinstance(metric, Number) and not metric.key.endswith("_total")
    ]
    rows = [
        (title, [of_metric(metric) for metric in shown if metric.group in groups], 3, at > 2)
        for at, (title, groups) in enumerate(ROWS)
    ]
    return [
        ("Overview", overview(), 8, False),
        ("Who", tables(), 2, False),
        *rows,
        ("Throttling, processes and events", happenings(), 2, False),
        ("GPU $gpu", one_gpu(), 4, True),
        ("Model servers", servers(), 4, True),
        ("Machine and server", machine(), 4, True),
    ]


def dashboard() -> str:
    """Return deploy/grafana/gpulse.json."""
    panels: list[dict[str, Any]] = []
    top = number = 0
    for title, inside, across, folded in sections():
        number += 1
        row: dict[str, Any] = {"id": number, "type": "row", "title": title, "collapsed": folded, "panels": []}
        row["gridPos"] = {"x": 0, "y": top, "w": WIDE, "h": 1}
        if "$gpu" in title:
            row["repeat"] = "gpu"
        height = 4 if title == "Overview" else HIGH
        for at, one in enumerate(inside):
            number += 1
            one["id"] = number
            width = WIDE // across
            one["gridPos"] = {"x": at % across * width, "y": top + 1 + at // across * height, "w": width, "h": height}
        panels.append(row)
        if folded:
            row["panels"] = inside
        else:
            panels += inside
        top += 1 + (0 if folded else (len(inside) + across - 1) // across * height)
    choices = [
        variable("instance", "Host", "label_values(gpulse_gpu_up, instance)"),
        variable("gpu", "GPU", 'label_values(gpulse_gpu_up{instance=~"$instance"}, gpu)'),
    ]
    return page("gpulse", "gpulse", "GPU usage, health and processes", panels, choices)


def page(title: str, uid: str, description: str, panels: list[dict[str, Any]], choices: list[dict[str, Any]]) -> str:
    """Return a dashboard of placed panels; its choices follow that of the data source."""
    source = {"type": "datasource", "name": "datasource", "label": "Data source", "query": "prometheus"}
    return (
        json.dumps(
            {
                "title": title,
                "uid": uid,
                "description": f"{description} ({MADE}).",
                "tags": ["gpu", "gpulse"],
                "schemaVersion": 38,
                "editable": True,
                "refresh": "30s",
                "time": {"from": "now-3h", "to": "now"},
                "graphTooltip": 1,
                "templating": {"list": [source, *choices]},
                "annotations": {"list": []},
                "panels": panels,
            },
            indent=1,
        )
        + "\n"
    )


def fleet() -> str:
    """Return deploy/grafana/fleet.json: sums over all machines, and who loses what."""
    use, active = name(Gpu.utilization), name(Gpu.sm_active)
    used, power = name(Gpu.memory_used), name(Gpu.power_draw)
    whole, by = '{mig=""}', "instance"
    held = f"count(gpulse_gpu_processes{whole} > 0) or vector(0)"
    idle = f"{used}{whole} * on (instance, uuid) group_left (user) gpulse_gpu_job_info and on (instance, uuid) ({use}{whole} < 0.02)"
    numbers = [
        stat("GPUs", f"count(gpulse_gpu_up{whole})", "short", "GPUs that Prometheus knows."),
        stat("Allocated", held, "short", "GPUs that a program holds."),
        stat("Active", f"sum({use}{whole})", "short", "Sum of utilization: two GPUs at 50 % are one."),
        stat("Effective", f"sum({active}{whole})", "short", "Sum of SM activity, of the GPUs that measure it."),
        stat("Lost", f"sum(1 - gpulse_gpu_up{whole})", "short", "GPUs that do not answer."),
        stat("Power", f"sum({power}{whole})", "watt", Gpu.power_draw.help),
        stat(
            "Hosts down", 'count(up{job=~".*gpulse.*"} == 0) or vector(0)', "short", "Machines that cannot be scraped."
        ),
        stat(
            "Free",
            "sum(gpulse:gpus_free:count) or vector(0)",
            "short",
            "GPUs that no program holds; needs the recording rules.",
        ),
    ]
    charts = [
        curves("Utilization by host", [(f"avg by ({by}) ({use}{whole})", "{{instance}}")], "percentunit", min=0, max=1),
        curves(
            "SM active by host", [(f"avg by ({by}) ({active}{whole})", "{{instance}}")], "percentunit", min=0, max=1
        ),
        curves("Power by host", [(f"sum by ({by}) ({power}{whole})", "{{instance}}")], "watt", min=0),
        curves("GPUs by user", [("count by (user) (gpulse_gpu_job_info)", "{{user}}")], "short", min=0),
        curves("Memory held idle, by user", [(f"sum by (user) ({idle})", "{{user}}")], "bytes", min=0),
        curves("Lost GPUs by host", [(f"sum by ({by}) (1 - gpulse_gpu_up{whole})", "{{instance}}")], "short", min=0),
    ]
    panels = []
    for at, one in enumerate(numbers):
        panels.append({**one, "id": at + 1, "gridPos": {"x": at % 8 * 3, "y": 0, "w": 3, "h": 4}})
    for at, one in enumerate(charts):
        place = {"x": at % 2 * 12, "y": 4 + at // 2 * 9, "w": 12, "h": 9}
        panels.append({**one, "id": len(numbers) + at + 1, "gridPos": place})
    return page("gpulse fleet", "gpulse-fleet", "GPUs of all machines", panels, [])


def files() -> dict[Path, str]:
    """Return the expected content of each generated file."""
    return {
        ROOT / "deploy/grafana/gpulse.json": dashboard(),
        ROOT / "deploy/grafana/fleet.json": fleet(),
        ROOT / "deploy/prometheus/gpulse.rules.yml": rules(),
    }


def main(argv: list[str]) -> int:
    """Write the files, or list those that are out of date."""
    stale = {path: text for path, text in files().items() if not path.exists() or path.read_text() != text}
    for path, text in stale.items():
        if "--check" in argv:
            print(f"{path.relative_to(ROOT)} is not up to date: run `make docs`.", file=sys.stderr)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            print(f"wrote {path.relative_to(ROOT)}")
    return int(bool(stale) and "--check" in argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

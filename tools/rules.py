"""Prometheus rules made from the catalog: series worth keeping ready, and alerts; written by tools.dashboards."""

from __future__ import annotations

import json
from typing import NamedTuple

from gpulse.analysis.tally import HARMLESS
from gpulse.model.catalog import Gpu
from gpulse.model.metric import Metric
from gpulse.present.exposition import series_name
from gpulse.surfaces.exporter.counters import GPU_RATES
from gpulse.surfaces.exporter.families import total_name

MADE = "made by `make docs`; do not edit"
WHO = "GPU {{ $labels.gpu }} of {{ $labels.instance }}"


def name(metric: Metric) -> str:
    """Return the series of a GPU metric."""
    return total_name(metric, "gpu") if metric in GPU_RATES else series_name(metric, "gpu")


class Alert(NamedTuple):
    """One alert: `lasting` is how long `query` must hold before it fires."""

    name: str
    query: str
    lasting: str
    severity: str
    summary: str
    description: str


def alerts() -> list[Alert]:
    """Return the alerts on the hardware, on its use and on gpulse itself."""
    return [*_faults(), *_uses(), *_servers()]


def _faults() -> list[Alert]:
    xids, errors, calm = "gpulse_gpu_xid_errors_total", name(Gpu.ecc_uncorrected), "|".join(sorted(HARMLESS))
    slowed = f'rate(gpulse_gpu_throttle_seconds_total{{reason!~"{calm}"}}[5m])'
    chip, memory = name(Gpu.temperature), name(Gpu.memory_temperature)
    hot = f"{chip} > {Gpu.temperature.critical:g} or {chip} >= {name(Gpu.temperature_limit)} - 1"
    hot += f" or {memory} > {Gpu.memory_temperature.critical:g}"
    return [
        Alert(
            *("GpulseGpuLost", "gpulse_gpu_up == 0", "1m", "critical", f"{WHO} is lost"),
            "The driver cannot reach it or does not answer; `dmesg` may say why, a reset or a reboot is the usual cure.",
        ),
        Alert(  # the first error of a kind makes a new series, which has no increase
            *("GpulseXid", f"increase({xids}[15m]) > 0 or ({xids} unless {xids} offset 15m)", "0m", "critical"),
            f"{WHO} reported XID {{{{ $labels.xid }}}}",
            "The driver reported an error; NVIDIA's list of XIDs says whether the program or the board is at fault.",
        ),
        Alert(
            *("GpulseEccUncorrected", f"increase({errors}[1h]) > 0", "0m", "critical", f"{WHO} has memory errors"),
            "{{ $value }} errors could not be corrected in the last hour; what ran there may have wrong results.",
        ),
        Alert(
            *("GpulseThrottled", f"max by (instance, gpu, uuid) ({slowed}) > 0.01", "5m", "warning"),
            f"{WHO} is slowed down",
            "Heat or its power supply lowers its clocks {{ $value | humanizePercentage }} of the time.",
        ),
        Alert(
            *("GpulseHot", hot, "5m", "warning", f"{WHO} is hot"),
            "It or its memory has {{ $value }} °C, at which it slows itself down or soon will.",
        ),
    ]


def _uses() -> list[Alert]:
    used, total, full = name(Gpu.memory_used), name(Gpu.memory_total), name(Gpu.memory_percent)
    growing = f"predict_linear({used}[30m], 1800) > {total} and {full} > 0.5 and {full} > {full} offset 15m"
    idle = f"max_over_time({name(Gpu.utilization)}[15m]) < 0.02 and {used} > 5e8 and gpulse_gpu_processes > 0"
    return [
        Alert(
            *("GpulseNearlyOutOfMemory", f"{full} > {(Gpu.memory_percent.critical or 0) / 100:g}", "2m", "warning"),
            f"{WHO} is nearly out of memory",
            "{{ $value | humanizePercentage }} of what programs can have is in use.",
        ),
        Alert(
            *("GpulseMemoryLeak", growing, "10m", "warning", f"The memory of {WHO} runs out within half an hour"),
            "It has grown steadily for half an hour: a leak, or a cache without a limit.",
        ),
        Alert(
            *("GpulseIdleAllocation", idle, "15m", "info", f"{WHO} is held and not used"),
            "Processes hold its memory, and nothing has run there for a quarter of an hour.",
        ),
    ]


def _servers() -> list[Alert]:
    server, stale = "gpulse on {{ $labels.instance }}", "time() - gpulse_last_sample_timestamp_seconds > 60"
    return [
        Alert(
            *("GpulseStale", stale, "1m", "warning", f"{server} has no new sample"),
            "The last one is {{ $value | humanizeDuration }} old: the driver may hang.",
        ),
        Alert(
            *("GpulseDown", 'up{job=~".*gpulse.*"} == 0', "2m", "warning", f"{server} cannot be scraped"),
            "The machine, its network or the server is down.",
        ),
    ]


def records() -> list[tuple[str, str]]:
    """Return the series worth keeping ready: who uses what, at that moment, and how many GPUs are free."""
    used, join = name(Gpu.memory_used), "* on (instance, uuid) group_left (user, job_id) gpulse_gpu_job_info"
    return [
        ("gpulse:gpu_power_draw_watts:owned", f"{name(Gpu.power_draw)} {join}"),
        ("gpulse:gpu_clock_sm_hertz:owned", f"{name(Gpu.clock_sm)} {join}"),
        ("gpulse:gpus_free:count", f"count by (instance) (gpulse_gpu_processes == 0 and {used} < 5e8)"),
        ("gpulse:gpu_utilization_ratio:avg10m", f"avg_over_time({name(Gpu.utilization)}[10m])"),
        ("gpulse:gpu_sm_active_ratio:avg10m", f"avg_over_time({name(Gpu.sm_active)}[10m])"),
    ]


def rules() -> str:
    """Return deploy/prometheus/gpulse.rules.yml."""
    text = json.dumps  # a JSON text is a YAML text
    out = [f"# {MADE}", "groups:", "- name: gpulse-records", "  interval: 30s", "  rules:"]
    for record, query in records():
        out += [f"  - record: {text(record)}", f"    expr: {text(query)}"]
    out += ["- name: gpulse-alerts", "  rules:"]
    for alert in alerts():
        out += [f"  - alert: {alert.name}", f"    expr: {text(alert.query)}", f"    for: {alert.lasting}"]
        out += ["    labels:", f"      severity: {alert.severity}", "    annotations:"]
        out += [f"      summary: {text(alert.summary)}"]
        out += [f"      description: {text(alert.description, ensure_ascii=False)}"]
    return "\n".join([*out, ""])

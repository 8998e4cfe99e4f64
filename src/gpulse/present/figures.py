"""Figures: the words and units of the numbers that verdicts are based on."""

from __future__ import annotations

from ..model.catalog import GPU_METRICS, HOST_METRICS, SERVER_METRICS
from ..units import duration_text, size_text
from .cells import THROTTLE, value_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..model.verdict import Evidence, Plain

# Numbers that the diagnosis derives: the words before the number, and its kind.
FIGURES: dict[str, tuple[str, str]] = {
    "busy": ("time with a kernel running", "percent"),
    "idle_share": ("time in pauses of 0.2 s or more", "percent"),
    "fill": ("SMs active while a kernel runs", "percent"),
    "thread_share": ("GPU waits for one thread", "percent"),
    "workers_share": ("GPU waits for workers", "percent"),
    "storage_share": ("GPU waits for storage", "percent"),
    "outside_share": ("GPU waits for something outside", "percent"),
    "network_share": ("GPU waits for the network", "percent"),
    "launch_share": ("launching and small kernels", "percent"),
    "copy_share": ("copies without computing", "percent"),
    "thread_running": ("samples in which the thread runs", "percent"),
    "thread_disk": ("samples in which the thread waits for a disk", "percent"),
    "thread_lock": ("samples in which the thread waits for a lock or queue", "percent"),
    "thread_sleep": ("samples in which the thread sleeps", "percent"),
    "thread_network": ("samples in which the thread waits for a socket", "percent"),
    "thread_poll": ("samples in which the thread waits for events", "percent"),
    "thread_pipe": ("samples in which the thread waits for a pipe", "percent"),
    "thread_driver": ("samples in which the thread is in the driver", "percent"),
    "thread_waiting": ("samples in which the thread waits", "percent"),
    "thread_stopped": ("samples in which the thread is stopped", "percent"),
    "workers_blocked": ("workers that wait for a disk", "number"),
    "running_time": ("running for", "duration"),
    "cpu_main": ("CPU of the process", "cores"),
    "cpu_tree": ("CPU of process and children", "cores"),
    "cpu_per_worker": ("CPU per worker", "cores"),
    "workers": ("child processes", "count"),
    "host_cpu": ("all CPUs of the machine", "percent"),
    "tree_share": ("CPU of the program, of all cores", "percent"),
    "iowait_cores": ("CPUs waiting for disks", "cores"),
    "read_rate": ("read from storage", "rate"),
    "write_rate": ("written to storage in the pauses", "rate"),
    "link_share": ("share of the PCIe link", "percent"),
    "power_share": ("power, of the limit", "percent"),
    "clock_share": ("SM clock, of its maximum", "percent"),
    "throttled_share": ("time throttled", "percent"),
    "power_capped_share": ("time at the power cap", "percent"),
    "applications_clocks": ("time with clocks set by a user", "percent"),
    "gap_share": ("time lost in pauses", "percent"),
    "gap_seconds": ("length of a pause", "seconds"),
    "gap_count": ("pauses", "count"),
    "period": ("time from pause to pause", "seconds"),
    "memory_growth": ("memory growth", "rate"),
    "rising_steps": ("steps by which memory rose", "count"),
    "process_memory": ("memory of the process", "size"),
    "memory_rise": ("memory gained in its last seconds", "size"),
    "computing_processes": ("processes computing at once", "count"),
    "process_sm": ("SM share of a process", "percent"),
    "spinning_gpus": ("GPUs of the job that spin", "count"),
    "window_seconds": ("for", "seconds"),
    "peer_clock": ("SM clock of the other GPUs", "clock"),
    "peer_tensor": ("tensor cores of the other GPUs", "percent"),
    "peer_busy": ("time with a kernel running on the other GPUs", "percent"),
    "peers": ("other GPUs of the job", "count"),
    "running": ("running requests", "count"),
    "waiting": ("waiting requests", "count"),
    "idle_time": ("without a token for", "duration"),
    "first_token_p95": ("first token, p95", "seconds"),
    "generation_rate": ("generated tokens per second", "count"),
    "prompt_rate": ("prompt tokens per second", "count"),
    "preemption_rate": ("preemptions per second", "number"),
    "preempted_share": ("preemptions per 100 finished requests", "count"),
    "data_wait": ("time the program waited for data", "percent"),
    "state_asleep": ("time asleep", "duration"),
    "state_lost": ("time lost from the bus", "duration"),
    "state_timeout": ("time without an answer", "duration"),
}


def evidence_text(evidence: Evidence) -> str:
    """Return a number as text with the threshold it passed: "SM active 4 % (below 40 %)"."""
    name = figure_name(evidence.metric)
    text = f"{name[:1].upper()}{name[1:]} {figure_text(evidence.metric, evidence.value)}"
    limit = limit_text(evidence)
    return f"{text} ({limit})" if limit else text


def figure_name(metric: str) -> str:
    """Return the words for a number: the title of a catalog metric, or those of a figure of the diagnosis."""
    label = FIGURES.get(metric, ("", ""))[0]
    known = GPU_METRICS.get(metric) or HOST_METRICS.get(metric) or SERVER_METRICS.get(metric)
    return label or (known.title if known is not None else metric.replace("_", " "))


def limit_text(evidence: Evidence, above: str = "at least", below: str = "below") -> str:
    """Return the threshold that a number passed: "at least 80 %"; empty if there is none."""
    if evidence.threshold is None or evidence.side == "seen":
        return ""
    return f"{above if evidence.side == 'above' else below} {figure_text(evidence.metric, evidence.threshold)}"


def figure_text(metric: str, value: Plain) -> str:
    """Return a value of a catalog metric or of a figure of the diagnosis, with its unit."""
    if value is None:
        return "-"
    if metric == "throttle_reasons" and isinstance(value, tuple):
        return ", ".join(THROTTLE.get(str(word), str(word)) for word in value)
    if isinstance(value, tuple):
        return ", ".join(figure_text(metric, one) for one in value)
    if isinstance(value, str):
        return value
    kind = FIGURES.get(metric, ("", ""))[1]
    if kind:
        return _number(kind, value)
    known = GPU_METRICS.get(metric) or HOST_METRICS.get(metric) or SERVER_METRICS.get(metric)
    if known is None:
        return f"{value:g}"
    if known.unit.symbol == "B/s":
        return _number("rate", value)
    return value_text(known, value) if known.unit.symbol != "%" else _number("percent", value)


def _number(kind: str, value: float) -> str:
    if kind == "percent":
        return f"{value:.0f} %" if value >= 10 or value == int(value) else f"{value:.1f} %"
    if kind == "cores":
        return f"{value:.1f} cores"
    if kind == "rate":
        return f"{value / 1e9:.1f} GB/s" if value >= 1e9 else f"{value / 1e6:.0f} MB/s"
    if kind == "size":
        return size_text(value)
    if kind == "seconds":
        return f"{value:.1f} s" if value < 100 else duration_text(value)
    if kind == "duration":
        return duration_text(value) if value >= 1 else f"{value:.1f} s"
    if kind == "clock":
        return f"{value:.0f} MHz"
    return f"{value:.1f}" if kind == "number" else f"{value:.0f}"

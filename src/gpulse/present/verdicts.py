"""Verdicts in words: one sentence for each, its evidence and its advice; every surface takes its words from here."""

from __future__ import annotations

from ..units import duration_text, size_text
from .advice import advice_text
from .figures import evidence_text, figure_text
from .text import Untrusted, clean
from .words import gpus_text
from .xid import xid_remedy, xid_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from ..model.event import Event
    from ..model.verdict import Diagnosis, Holder, Verdict

# A few words for columns, badges and lists; the style says how bad it is.
SHORT: dict[str, tuple[str, str]] = {
    "healthy": ("healthy", "good"),
    "fp32_no_tensor": ("FP32, no tensor cores", "warn"),
    "memory_bandwidth": ("memory bandwidth", "warn"),
    "memory_latency": ("memory latency", "warn"),
    "launch_bound": ("launch-bound", "warn"),
    "small_batch": ("batch too small", "warn"),
    "input_bound_cpu": ("waiting for CPUs", "warn"),
    "input_bound_single_core": ("waiting for one process", "warn"),
    "input_bound_io": ("waiting for storage", "warn"),
    "transfer_bound": ("waiting for copies", "warn"),
    "stalls": ("interrupted", "warn"),
    "communication_bound": ("waiting for other GPUs", "warn"),
    "straggler": ("slower than its peers", "warn"),
    "hang": ("job hangs", "critical"),
    "idle_allocation": ("memory held, idle", "warn"),
    "underused": ("underused", "label"),
    "idle": ("idle", "label"),
    "contention": ("shared by several jobs", "warn"),
    "power_throttled": ("power-throttled", "warn"),
    "thermal_throttled": ("too hot", "critical"),
    "hw_slowdown": ("hardware slowdown", "critical"),
    "clocks_locked": ("clocks locked low", "warn"),
    "pcie_degraded": ("PCIe link degraded", "warn"),
    "memory_pressure": ("memory nearly full", "warn"),
    "memory_leak": ("memory leak", "critical"),
    "out_of_memory": ("out of memory", "critical"),
    "orphaned_memory": ("memory without owner", "warn"),
    "fault": ("hardware fault", "critical"),
    "driver_unresponsive": ("driver not responding", "critical"),
    "unknown": ("unknown", "label"),
}
QUIET = frozenset({"idle", "unknown"})  # not worth a line where only findings are listed


def title(verdict: Verdict) -> str:
    """Return the verdict as one sentence."""
    return TITLES[verdict.key](verdict) if verdict.key in TITLES else f"{verdict.key}."


def short(verdict: Verdict) -> str:
    """Return the verdict in two to four words."""
    return SHORT.get(verdict.key, (verdict.key, ""))[0]


def style(verdict: Verdict) -> str:
    """Return the style of a verdict: good, warn, critical or label."""
    return SHORT.get(verdict.key, ("", "label"))[1]


def gpu_name(verdict: Verdict) -> str:
    """Return the name of the GPU that a verdict is about: "GPU 0"."""
    return "GPU" if verdict.index is None else f"GPU {verdict.index}"


def line(verdict: Verdict) -> str:
    """Return the verdict with its GPU in one line: "GPU 0: …"."""
    return f"{gpu_name(verdict)}: {title(verdict)}"


def findings(diagnosis: Diagnosis) -> list[str]:
    """Return a diagnosis as sentences, one per GPU and finding, each with its first advice; GPUs that all are well share one.

    What is idle or unknown is left out. The texts are safe to print.
    """
    return ["".join(parts) for parts in finding_parts(diagnosis)]


def finding_parts(diagnosis: Diagnosis) -> list[tuple[str, ...]]:
    """Return the same in parts; what processes chose is Untrusted, for documents that have markup of their own."""
    told: list[tuple[str, ...]] = []
    for group in alike(diagnosis.verdicts):
        name, verdict = gpus_text([str(one.index) for one in group if one.index is not None]), group[0]
        if verdict.key not in QUIET:
            hint = f" {advice(verdict)[0]}" if advice(verdict) else ""
            told.append((f"{name}: ", *_marked(title(verdict), verdict), hint))
        told += [(f"{name}, also: ", *_marked(title(one), one)) for one in verdict.also if one.key != "healthy"]
    return told


def _marked(text: str, verdict: Verdict) -> tuple[str, ...]:
    """Split a sentence at the processes it names, which are Untrusted."""
    parts: list[str] = [text]
    for name in {who(one) for one in verdict.processes}:
        split: list[str] = []
        for part in parts:
            pieces = [part] if isinstance(part, Untrusted) else part.split(name)
            for at, piece in enumerate(pieces):
                split += [Untrusted(name), piece] if at else [piece]
        parts = split
    return tuple(part for part in parts if part)


def alike(verdicts: Sequence[Verdict], names: Mapping[int | None, str] | None = None) -> list[list[Verdict]]:
    """Put neighbors together that have nothing but the same good verdict, and the same product where `names` gives it by index."""
    groups: list[list[Verdict]] = []
    products = names or {}
    for verdict in verdicts:
        last = groups[-1][0] if groups else None
        good = verdict.key in ("healthy", "idle") and not verdict.also
        same = last is not None and last.key == verdict.key and not last.also
        if last is not None and good and same and products.get(last.index) == products.get(verdict.index):
            groups[-1].append(verdict)
        else:
            groups.append([verdict])
    return groups


def verdict_event(verdict: Verdict, time: float) -> Event:
    """Return the event that a GPU has a new verdict, as a history keeps it."""
    from ..model.event import Event

    return Event(
        time,
        "verdict",
        () if verdict.index is None else (str(verdict.index),),
        uuids=() if verdict.uuid is None else (verdict.uuid,),
        values={"verdict": verdict.key, "confidence": verdict.confidence},
        severity={"critical": "critical", "warn": "warn", "good": "good"}.get(style(verdict), "info"),
        note=title(verdict),
    )


def verdict_row(verdict: Verdict) -> dict[str, Any]:
    """Return what a page shows of a verdict: its sentence, and what unfolds below it."""
    return {
        "uuid": verdict.uuid or "",
        "verdict": verdict.key,
        "confidence": verdict.confidence,
        "level": style(verdict),
        "short": short(verdict),
        "text": title(verdict),
        "evidence": evidence(verdict),
        "advice": advice(verdict),
        "also": [title(one) for one in verdict.also],
    }


def evidence(verdict: Verdict) -> list[str]:
    """Return the evidence in words, one entry per number."""
    return [evidence_text(one) for one in verdict.evidence]


def advice(verdict: Verdict) -> list[str]:
    """Return the advice in words; an XID comes with NVIDIA's own action."""
    code = verdict.values.get("xid")
    if "xid" in verdict.advice and isinstance(code, (int, float)):
        remedy = xid_remedy(code) or "see NVIDIA's XID catalog"
        return [f"{xid_text(code)}: {remedy}.", *(advice_text(key) for key in verdict.advice if key != "xid")]
    return [advice_text(key) for key in verdict.advice[:3]]


def who(holder: Holder) -> str:
    """Return a process in words: "python (PID 4242, ada, 12.3 GiB)"."""
    facts = [f"PID {holder.pid}" if holder.pid is not None else "", clean(holder.user), clean(holder.job)]
    facts.append("" if holder.memory is None else size_text(holder.memory))
    return f"{clean(holder.name) or 'a process'} ({', '.join(fact for fact in facts if fact)})"


def worded(diagnosis: Diagnosis) -> Diagnosis:
    """Return the same diagnosis with every text filled in: titles, evidence and advice."""
    from ..model.verdict import Diagnosis

    verdicts = [worded_verdict(verdict) for verdict in diagnosis]
    return Diagnosis(verdicts, diagnosis.start, diagnosis.end, diagnosis.samples)


def worded_verdict(verdict: Verdict) -> Verdict:
    """Return the same verdict with every text filled in."""
    from ..model.verdict import Evidence

    numbers = [Evidence(one.metric, one.value, one.threshold, one.side, evidence_text(one)) for one in verdict.evidence]
    also = [worded_verdict(one) for one in verdict.also]
    return verdict.replace(title=title(verdict), remedies=advice(verdict), evidence=numbers, also=also)


def _first(verdict: Verdict, default: str = "the process") -> str:
    return who(verdict.processes[0]) if verdict.processes else default


def _number(verdict: Verdict, key: str) -> float | None:
    value = verdict.values.get(key)
    return value if isinstance(value, (int, float)) else None


def _figure(verdict: Verdict, metric: str) -> str:
    found = next((one for one in verdict.evidence if one.metric == metric), None)
    return "" if found is None else figure_text(metric, found.value)


def _healthy(verdict: Verdict) -> str:
    if verdict.values.get("guess"):
        return "Probably compute-bound and healthy: busy all the time and near its power limit (no GPM counters to confirm it)."
    pipe = "FP64 pipes" if _figure(verdict, "fp64_active") else "tensor cores"
    limit = "at its power limit, as it should be" if verdict.values.get("limit") == "power" else "as it should be"
    return f"Compute-bound and healthy: {pipe} busy {_figure(verdict, 'tensor_active') or _figure(verdict, 'fp64_active')}, {limit}."


def _bandwidth(verdict: Verdict) -> str:
    if verdict.values.get("guess"):
        return "Probably limited by memory bandwidth (judged by memory utilization; no GPM counters)."
    return f"Limited by memory bandwidth: DRAM busy {_figure(verdict, 'dram_active')}, while 80 to 90 % is the practical maximum."


def _launch(verdict: Verdict) -> str:
    if not _figure(verdict, "fill"):
        return "Probably launch-bound: one CPU thread is busy and the GPU is never idle for long (no GPM counters to confirm it)."
    return (
        f"Launch-bound: kernels are too small, so one CPU thread spends its time launching them and the "
        f"SMs are {_figure(verdict, 'sm_active')} active."
    )


def _single(verdict: Verdict) -> str:
    if not verdict.values.get("worked"):
        return f"The GPU waits: {_first(verdict)} keeps a CPU busy and has run nothing on the GPU in this window."
    return f"Input-bound: the GPU waits while {_first(verdict)} prepares data in its own thread."


def _cpus(verdict: Verdict) -> str:
    cores, workers = _number(verdict, "cores"), _number(verdict, "workers") or 0
    if verdict.values.get("kind") == "all_workers":
        return f"Input-bound: all {workers:.0f} loader workers are busy and the GPU waits for them."
    count = "" if cores is None else f" all {cores:.0f}"
    return f"Input-bound:{count} CPU cores are busy preparing data and cannot feed the GPU."


def _io(verdict: Verdict) -> str:
    rate = _number(verdict, "rate")
    speed = "" if not rate or rate < 1e6 else f" ({figure_text('read_rate', rate)})"
    place = "the network" if verdict.values.get("kind") == "network" else "storage"
    return f"Input-bound: the GPU waits while data is read from {place}{speed}."


def _transfer(verdict: Verdict) -> str:
    way = "host-to-device" if verdict.values.get("direction") == "h2d" else "device-to-host"
    memory = {"pageable": " from pageable memory" if way == "host-to-device" else " to pageable memory", "pinned": ""}
    rate = _number(verdict, "rate") or 0.0
    return (
        f"Transfer-bound: {way} copies{memory.get(str(verdict.values.get('memory')), '')} take the time "
        f"({figure_text('pcie_rx', rate)})."
    )


def _stalls(verdict: Verdict) -> str:
    period = _number(verdict, "period")
    cause = (
        "checkpoints (data is written meanwhile)"
        if verdict.values.get("kind") == "checkpoint"
        else "evaluation, logging or waits"
    )
    every = "" if period is None else f" about every {figure_text('period', period)}"
    return f"Interrupted{every}: pauses for {cause} take {_figure(verdict, 'gap_share')} of the time."


def _communication(verdict: Verdict) -> str:
    link = "NVLink" if verdict.values.get("kind") == "nvlink" else "PCIe"
    return f"Communication-bound: the GPUs of this job exchange data over {link} and compute little meanwhile."


def _straggler(verdict: Verdict) -> str:
    if verdict.values.get("kind") == "clock":
        return (
            f"Straggler: it runs at {_figure(verdict, 'clock_sm')} while the other GPUs of the job run "
            f"at {_figure(verdict, 'peer_clock')} and wait for it."
        )
    return "Straggler: it computes less than the other GPUs of the job, which wait for it inside a collective."


def _hang(verdict: Verdict) -> str:
    stuck = verdict.values.get("stuck")
    names = (
        ", ".join(f"{one:.0f}" for one in stuck if isinstance(one, (int, float))) if isinstance(stuck, tuple) else ""
    )
    hint = f"; GPU {names} does nothing and may be the cause" if names else ""
    return (
        f"The job hangs: its {_number(verdict, 'gpus') or 0:.0f} GPUs spin without computing or exchanging data{hint}."
    )


def _idle_allocation(verdict: Verdict) -> str:
    held = _number(verdict, "held")
    more = f" and {len(verdict.processes) - 1} more" if len(verdict.processes) > 1 else ""
    return f"Idle allocation: {_first(verdict)}{more} holds {size_text(held or 0)} and runs nothing."


def _underused(verdict: Verdict) -> str:
    if verdict.values.get("kind") == "server":
        return "Underused: a server that waits for requests; nothing is wrong but the size of the GPU."
    return f"Underused: kernels run {_figure(verdict, 'busy')} of the time and the program waits for something outside."


def _contention(verdict: Verdict) -> str:
    names = " and ".join(who(one) for one in verdict.processes[:3])
    if verdict.confidence == "low":
        return f"Probably shared: {names} are on this GPU at the same time."
    return f"Contention: {names} compute on this GPU at the same time and slow each other down."


def _power(verdict: Verdict) -> str:
    share = _figure(verdict, "power_capped_share")
    return f"Power-throttled: the limit of {_figure(verdict, 'power_limit')} holds the clocks down for {share} of the time."


def _thermal(verdict: Verdict) -> str:
    return (
        f"Thermally throttled for {_figure(verdict, 'throttled_share')} of the time: {_figure(verdict, 'temperature')}, "
        f"clocks at {_figure(verdict, 'clock_sm')}."
    )


def _pcie(verdict: Verdict) -> str:
    width = next((one for one in verdict.evidence if one.metric == "pcie_width"), None)
    gen = next((one for one in verdict.evidence if one.metric == "pcie_gen"), None)
    parts = [f"x{width.value:.0f} of x{width.threshold:.0f}"] if width and isinstance(width.value, (int, float)) else []
    parts += (
        [f"generation {gen.value:.0f} of {gen.threshold:.0f}"] if gen and isinstance(gen.value, (int, float)) else []
    )
    return f"The PCIe link is degraded under load: {', '.join(parts)}."


def _leak(verdict: Verdict) -> str:
    eta = verdict.values.get("eta")
    rate = _number(verdict, "rate") or 0.0
    when = ""
    if isinstance(eta, tuple) and len(eta) == 2:
        when = f", full in {duration_text(float(eta[0]))} to {duration_text(float(eta[1]))} at this rate"
    return f"Memory leak: {_first(verdict, 'memory in use')} grows by {size_text(rate * 60)} per minute{when}."


def _oom(verdict: Verdict) -> str:
    others = len(verdict.processes) - 1
    beside = "" if others < 1 else f"; {others} other process{'es' if others > 1 else ''} held memory too"
    sure = "Ran out of memory" if verdict.confidence == "high" else "Probably ran out of memory"
    return f"{sure}: {_first(verdict)} ended just after its memory had risen to {_figure(verdict, 'process_memory')}{beside}."


def _fault(verdict: Verdict) -> str:
    code = _number(verdict, "xid")
    if verdict.values.get("kind") == "lost":
        back = " and came back" if _number(verdict, "end_time") is not None else ""
        return f"Hardware fault: the GPU was lost for {_figure(verdict, 'state_lost')}{back}{'' if code is None else f' (XID {code:.0f})'}."
    if verdict.values.get("kind") == "ecc":
        return f"Hardware fault: {_figure(verdict, 'ecc_uncorrected')} memory errors that could not be corrected."
    return f"The driver reported {xid_text(code or 0.0)}{f': {xid_remedy(code)}' if code and xid_remedy(code) else ''}."


def _driver(verdict: Verdict) -> str:
    now = "does not answer" if verdict.values.get("kind") == "now" else "did not answer"
    return f"The driver {now} for this GPU ({_figure(verdict, 'state_timeout')})."


def _unknown(verdict: Verdict) -> str:
    reasons = {
        "short": "Unknown: too few samples to judge.",
        "blind": "Unknown: the GPU reports no activity.",
        "starting": "Unknown: a process holds the GPU and has not used it yet: starting up, or running on the CPU.",
        "no_counters": "Unknown: without GPM counters (Hopper and later) utilization alone cannot tell.",
    }
    return reasons.get(str(verdict.values.get("kind")), "Unknown: no single limit stands out.")


TITLES: dict[str, Callable[[Verdict], str]] = {
    "healthy": _healthy,
    "fp32_no_tensor": lambda verdict: (
        f"Compute-bound without tensor cores: FP32 pipes busy {_figure(verdict, 'fp32_active')}, tensor "
        f"cores {_figure(verdict, 'tensor_active')}."
    ),
    "memory_bandwidth": _bandwidth,
    "memory_latency": lambda verdict: (
        f"Limited by memory latency: the SMs are {_figure(verdict, 'sm_active')} occupied but wait; DRAM "
        f"is busy only {_figure(verdict, 'dram_active')}."
    ),
    "launch_bound": _launch,
    "small_batch": lambda verdict: (
        f"Too little work per kernel: kernels run all the time but use {_figure(verdict, 'sm_active')} "
        f"of the SMs; the batch is small for this GPU."
    ),
    "input_bound_cpu": _cpus,
    "input_bound_single_core": _single,
    "input_bound_io": _io,
    "transfer_bound": _transfer,
    "stalls": _stalls,
    "communication_bound": _communication,
    "straggler": _straggler,
    "hang": _hang,
    "idle_allocation": _idle_allocation,
    "underused": _underused,
    "idle": lambda verdict: "Idle: nothing runs and nothing is held.",
    "contention": _contention,
    "power_throttled": _power,
    "thermal_throttled": _thermal,
    "hw_slowdown": lambda verdict: (
        f"Slowed down by the hardware for {_figure(verdict, 'throttled_share')} of the time ({_figure(verdict, 'throttle_reasons')})."
    ),
    "clocks_locked": lambda verdict: (
        f"Clocks are locked low: {_figure(verdict, 'clock_sm')} of {_figure(verdict, 'clock_sm_max')} "
        f"under load, without heat or power as a reason."
    ),
    "pcie_degraded": _pcie,
    "memory_pressure": lambda verdict: (
        f"Memory is nearly full: {_figure(verdict, 'memory_percent')} in use; peaks between samples can be higher."
    ),
    "memory_leak": _leak,
    "out_of_memory": _oom,
    "orphaned_memory": lambda verdict: (
        f"{_figure(verdict, 'memory_unattributed')} are in use and no visible process holds them."
    ),
    "fault": _fault,
    "driver_unresponsive": _driver,
    "unknown": _unknown,
}

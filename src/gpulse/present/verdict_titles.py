"""The sentence of each verdict."""

from __future__ import annotations

from ..model.condition import xid_of
from ..units import count_text, duration_text, size_text
from .cells import xid_text
from .figures import THREADS, figure_text
from .text import clean
from .words import gpus_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from ..model.verdict import Holder, Verdict

    # A text with figures in braces, one for each value of `kind` ("" is any other), or a function.
    Title: TypeAlias = "str | dict[str, str] | Callable[[Verdict], str]"

_FULL_DRAM = 70.0  # per cent of DRAM activity that is near what can be had


def title(verdict: Verdict) -> str:
    """Return a verdict as one sentence."""
    text = TITLES.get(verdict.key)
    if text is None:
        return f"{verdict.key}."
    if isinstance(text, dict):
        text = text.get(str(verdict.values.get("kind")), text[""])
    return text.format_map(_Figures(verdict)) if isinstance(text, str) else text(verdict)


def who(holder: Holder) -> str:
    """Return a process as events name it, with what it holds: "ada's python (pid 4242, 12.3 GiB)"."""
    owner = f"{clean(holder.user)}'s " if holder.user else ""
    facts = [f"pid {holder.pid}" if holder.pid is not None else "", clean(holder.job)]
    facts.append("" if holder.memory is None else size_text(holder.memory))
    told = ", ".join(fact for fact in facts if fact)
    return f"{owner}{clean(holder.name) or 'process'}{f' ({told})' if told else ''}"


class _Figures(dict):  # type: ignore[type-arg]
    """The figures of a verdict for its text: {metric}, {metric|another if there is none}, {metric|=a word}, {first process}.

    {metric noun} is a number with its noun: 1 request, 12 requests.
    """

    def __init__(self, verdict: Verdict) -> None:
        self._verdict = verdict

    def __missing__(self, names: str) -> str:
        texts = (name[1:] if name.startswith("=") else self._text(name) for name in names.split("|"))
        return next(filter(None, texts), "")

    def _text(self, name: str) -> str:
        if name == "first process":
            return _first(self._verdict)
        metric, _, noun = name.partition(" ")
        return _count(self._verdict, metric, noun) if noun else _figure(self._verdict, metric)


def _first(verdict: Verdict, default: str = "the process") -> str:
    return who(verdict.processes[0]) if verdict.processes else default


def _people(verdict: Verdict, most: int) -> str:
    """Return the processes of a verdict: "ada's python (pid 7), bob's python (pid 9) and 2 more"."""
    names, more = [who(one) for one in verdict.processes[:most]], len(verdict.processes) - most
    names += [f"{more} more"] if more > 0 else []
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def _number(verdict: Verdict, key: str) -> float | None:
    value = verdict.values.get(key)
    return value if isinstance(value, (int, float)) else None


def _figure(verdict: Verdict, metric: str) -> str:
    found = next((one for one in verdict.evidence if one.metric == metric), None)
    return "" if found is None else figure_text(metric, found.value)


def _count(verdict: Verdict, metric: str, noun: str) -> str:
    found = next((one.value for one in verdict.evidence if one.metric == metric), None)
    return count_text(found, noun) if isinstance(found, (int, float)) else ""


def _healthy(verdict: Verdict) -> str:
    pipe = "FP64 pipes" if _figure(verdict, "fp64_active") else "tensor cores"
    limit = "at its power limit, as it should be" if verdict.values.get("limit") == "power" else "as it should be"
    return f"Compute-bound and healthy: {pipe} busy {_figure(verdict, 'tensor_active') or _figure(verdict, 'fp64_active')}, {limit}."


def _bandwidth(verdict: Verdict) -> str:
    if verdict.values.get("guess"):
        return "Probably limited by memory bandwidth (judged by memory utilization; no activity counters)."
    dram = next((one.value for one in verdict.evidence if one.metric == "dram_active"), None)
    full = isinstance(dram, (int, float)) and dram >= _FULL_DRAM
    told = "near its practical maximum" if full else "more than any compute unit"
    return f"Limited by memory bandwidth: DRAM busy {_figure(verdict, 'dram_active')}, {told}."


def _host(verdict: Verdict) -> str:
    if not verdict.values.get("worked"):
        return f"The GPU waits: {_first(verdict)} keeps a CPU busy and has run nothing on the GPU in this window."
    waits = f"the GPU waits {_figure(verdict, 'thread_share')} of the time"
    if verdict.values.get("short"):
        return f"Short of CPU: {waits} while {_first(verdict)} is ready to run but gets only {_figure(verdict, 'cpu_main')} of CPU."
    return f"Host-bound: {waits} while one thread of {_first(verdict)} runs."


def _cpus(verdict: Verdict) -> str:
    cores, workers, kind = _number(verdict, "cores"), _number(verdict, "workers") or 0, verdict.values.get("kind")
    waits = f"the GPU waits {_figure(verdict, 'workers_share')} of the time"
    if kind == "all_workers":
        each = figure_text("cpu_per_worker", _number(verdict, "per_worker"))
        several = f"{workers:.0f} worker processes, which use {each} each"
        return f"Input-bound: {waits} for {several if workers >= 1.5 else f'a worker process, which uses {each}'}."
    if kind == "threads":
        return f"Input-bound: {waits} for other threads of the program ({_figure(verdict, 'cpu_tree')})."
    if kind == "busy_host":
        return f"Input-bound: all CPUs of the machine are busy, this program's and others'; {waits}."
    count = "all" if cores is None else f"all {cores:.0f}"
    return f"Input-bound: {count} CPU cores are busy preparing data; {waits}."


def _io(verdict: Verdict) -> str:
    rate = _number(verdict, "rate")
    speed = "" if not rate or rate < 1e6 else f" ({figure_text('read_rate', rate)})"
    if verdict.values.get("kind") == "data":
        return f"Input-bound: the program waited {_figure(verdict, 'data_wait')} of the time for data; what for is not visible."
    waits = _figure(verdict, "storage_share") or _figure(verdict, "data_wait")
    return f"Input-bound: the GPU waits {waits} of the time while data is read from storage{speed}."


def _waiting(verdict: Verdict) -> str:
    part, state = str(verdict.values.get("kind")), str(verdict.values.get("state"))
    what = "the network" if part == "network" else "something outside the program"
    told = state in THREADS and state not in ("waiting", "disk")  # those say no more than that neither runs
    doing = f"its main thread {THREADS[state]}" if told else "neither it nor its workers run"
    return f"Waiting: the GPU waits {_figure(verdict, f'{part}_share')} of the time for {what} ({doing})."


def _loading(verdict: Verdict) -> str:
    grown, rate = _number(verdict, "grown") or 0.0, _number(verdict, "rate") or 0.0
    return f"Loading: {size_text(grown)} arrived on the GPU at {figure_text('pcie_rx', rate)}; nothing is computed yet."


def _transfer(verdict: Verdict) -> str:
    way = "host-to-device" if verdict.values.get("direction") == "h2d" else "device-to-host"
    preposition = "from" if way == "host-to-device" else "to"
    memory = f" {preposition} pageable memory" if verdict.values.get("memory") == "pageable" else ""
    rate = figure_text("pcie_rx", _number(verdict, "rate") or 0.0)
    return f"Transfer-bound: {way} copies{memory} take the time ({rate})."


_MEANWHILE = {
    "checkpoint": "checkpoints (data is written meanwhile)",
    "thread": "something that one thread does alone (evaluation, metrics, logging)",
    "workers": "work of other processes of the program",
    "storage": "reads from storage",
    "network": "the network",
    "outside": "something outside the program",
}


def _stalls(verdict: Verdict) -> str:
    period, length = _number(verdict, "period"), _number(verdict, "length")
    cause = _MEANWHILE.get(str(verdict.values.get("cause")), "evaluation, logging or waits")
    every = "" if period is None else f" about every {figure_text('period', period)}"
    long = "" if length is None else f" for {figure_text('gap_seconds', length)}"
    return f"Interrupted{every}{long}: pauses for {cause} take {_figure(verdict, 'gap_share')} of the time."


def _hang(verdict: Verdict) -> str:
    stuck, count = verdict.values.get("stuck"), _number(verdict, "gpus") or 0
    names = [f"{one:.0f}" for one in stuck if isinstance(one, (int, float))] if isinstance(stuck, tuple) else []
    does = "does" if len(names) == 1 else "do"
    hint = f"; {gpus_text(names)} {does} nothing and may be the cause" if names else ""
    return f"The job hangs: its {count:.0f} GPUs spin without computing or exchanging data{hint}."


def _idle_allocation(verdict: Verdict) -> str:
    held, names = size_text(_number(verdict, "held") or 0), _people(verdict, 1) or "a process that was not recorded"
    if len(verdict.processes) > 1:
        return f"Idle allocation: {names} hold {held} and run nothing."
    return f"Idle allocation: {names} holds {held} and runs nothing."


def _decode(verdict: Verdict) -> str:
    room, running = _number(verdict, "room") or 1.0, _number(verdict, "running") or 0.0
    return (
        f"Decoding is limited by memory bandwidth: DRAM busy {_figure(verdict, 'dram_active')}, tensor cores "
        f"{_figure(verdict, 'tensor_active')}. {count_text(running, 'request')} {'runs' if round(running) == 1 else 'run'}; about "
        f"{room:.1f} times as many would cost little time per token."
    )


def _serving_idle(verdict: Verdict) -> str:
    model = clean(str(verdict.values.get("model") or "a model")).rpartition("/")[2]
    return f"Serving {model}, no traffic for {duration_text(_number(verdict, 'quiet') or 0)}."


def _underused(verdict: Verdict) -> str:
    return f"Underused: {_first(verdict, 'a server')} waits for requests; kernels run {_figure(verdict, 'busy')} of the time."


def _contention(verdict: Verdict) -> str:
    names = _people(verdict, 3)
    if verdict.confidence == "low":
        return f"Probably shared: {names} are on this GPU at the same time."
    return f"Contention: {names} compute on this GPU at the same time and slow each other down."


def _pcie(verdict: Verdict) -> str:
    found = {one.metric: one for one in verdict.evidence if isinstance(one.value, (int, float))}
    words = (("pcie_width", "x{:.0f} of x{:.0f}"), ("pcie_gen", "generation {:.0f} of {:.0f}"))
    parts = [text.format(found[key].value, found[key].threshold) for key, text in words if key in found]
    return f"The PCIe link is degraded under load: {', '.join(parts)}."


def _leak(verdict: Verdict) -> str:
    eta, rate, when = verdict.values.get("eta"), _number(verdict, "rate") or 0.0, ""
    if isinstance(eta, tuple) and len(eta) == 2:
        when = f", full in {duration_text(float(eta[0]))} to {duration_text(float(eta[1]))} at this rate"
    return f"Memory leak: {_first(verdict, 'memory in use')} grows by {size_text(rate * 60)} per minute{when}."


def _out_of_memory(verdict: Verdict) -> str:
    others = len(verdict.processes) - 1
    beside = "" if others < 1 else f"; {others} other process{'es' if others > 1 else ''} held memory too"
    sure = "Ran out of memory" if verdict.confidence == "high" else "Probably ran out of memory"
    return f"{sure}: {_first(verdict)} ended just after its memory had risen to {_figure(verdict, 'process_memory')}{beside}."


def _lost(verdict: Verdict) -> str:
    code = _number(verdict, "xid")
    lasted = _figure(verdict, "state_lost")
    what = (
        f"has been lost for {lasted}"
        if _number(verdict, "end_time") is None
        else f"was lost for {lasted} and came back"
    )
    return f"The GPU {what}{'' if code is None else f' (XID {code:.0f})'}."


_AFFECTED = {"program": "an error of a program", "link": "a link error", "notice": "a notice"}


def _xid(verdict: Verdict) -> str:
    code = _number(verdict, "xid") or 0.0
    told = xid_of(code)
    whose, remedy = _AFFECTED.get(told.affects, "a fault of the GPU"), f"; {told.remedy}" if told.remedy else ""
    return f"The driver reported {whose}: {xid_text(code)}{remedy}."


def _not_used(verdict: Verdict) -> str:
    return f"The program computed nothing on this GPU; {_people(verdict, 2) or 'others'} did."


TITLES: dict[str, Title] = {
    "healthy": _healthy,
    "fp32_no_tensor": "Compute-bound without tensor cores: FP32 pipes busy {fp32_active}, tensor cores {tensor_active}.",
    "memory_bandwidth": _bandwidth,
    "memory_latency": "Limited by memory latency: the SMs are {sm_active} occupied but wait; DRAM is busy only {dram_active}.",
    "serving_stuck": "The model server is stuck: no token for {idle_time} with {running request|=some requests} running and "
    "{waiting|=none} waiting.",
    "serving_cache_full": "The key-value cache is full: {kv_cache} in use with {waiting request} waiting.",
    "serving_preemptions": "Requests are preempted {preemption_rate} times per second and computed again: too many run for the cache.",
    "serving_queue": "{waiting} requests wait although the SMs are only {sm_active|utilization} active and the cache has room: "
    "the server's CPU work or its limits hold them back.",
    "serving_decode": _decode,
    "serving_prefill": "Prefill-bound: {prompt_rate} prompt tokens per second for {generation_rate} generated ones, tensor cores "
    "busy {tensor_active}.",
    "serving_idle": _serving_idle,
    "launch_bound": "Launch-bound: kernels are too small, so one CPU thread spends its time launching them and the SMs are "
    "{sm_active} active.",
    "small_batch": "Too little work per kernel: kernels run all the time but use {sm_active} of the SMs; the batch is small for "
    "this GPU.",
    "input_bound_cpu": _cpus,
    "host_bound": _host,
    "waiting": _waiting,
    "starting": "Starting: {first process} has run for {running_time} and has no steady work on the GPU yet.",
    "loading": _loading,
    "not_used": _not_used,
    "busy": "Busy: kernels run {utilization} of the time; without activity counters (Hopper and later) gpulse cannot tell how well "
    "they use the GPU.",
    "input_bound_io": _io,
    "transfer_bound": _transfer,
    "stalls": _stalls,
    "communication_bound": {
        "nvlink": "Communication-bound: the GPUs of this job exchange data over NVLink and compute little meanwhile.",
        "": "Communication-bound: the GPUs of this job exchange data over PCIe and compute little meanwhile.",
    },
    "straggler": {
        "clock": "Straggler: it runs at {clock_sm} while the other GPUs of the job run at {peer_clock} and wait for it.",
        "": "Straggler: it computes less than the other GPUs of the job, which wait for it inside a collective.",
    },
    "hang": _hang,
    "idle_allocation": _idle_allocation,
    "underused": _underused,
    "idle": {
        "held": "Idle: nothing runs; {first process} holds little memory.",
        "": "Idle: nothing runs and nothing is held.",
    },
    "contention": _contention,
    "power_throttled": "Power-throttled: the limit of {power_limit} holds the clocks down for {power_capped_share} of the time.",
    "thermal_throttled": "Thermally throttled for {throttled_share} of the time: {temperature}, clocks at {clock_sm}.",
    "hw_slowdown": "Slowed down by the hardware for {throttled_share} of the time ({throttle_reasons}).",
    "clocks_locked": "Clocks are locked low: {clock_sm} of {clock_sm_max} under load, without heat or power as a reason.",
    "pcie_degraded": _pcie,
    "memory_pressure": "Memory is nearly full: {memory_percent} in use; peaks between samples can be higher.",
    "memory_leak": _leak,
    "out_of_memory": _out_of_memory,
    "orphaned_memory": "{memory_unattributed} are in use and no visible process holds them.",
    "lost": _lost,
    "xid": _xid,
    "memory_errors": "{ecc_uncorrected memory error} could not be corrected.",
    "driver_unresponsive": {
        "now": "The driver does not answer for this GPU ({state_timeout}).",
        "": "The driver did not answer for this GPU ({state_timeout}).",
    },
    "unknown": {
        "short": "Cannot tell yet: too few samples of steady work.",
        "blind": "Cannot tell: the GPU reports no activity.",
        "starting": "Cannot tell: a process holds the GPU and has not used it yet: starting up, or running on the CPU.",
        "rare": "Cannot tell: a process holds the GPU and uses it too seldom to say what it waits for.",
        "unlisted": "Cannot tell whether the GPU is idle: its processes were not read.",
        "unowned": "Cannot tell whether the GPU is idle: it is in use, and no process on it is visible from here.",
        "no_processes": "Cannot tell what the GPU waits for: its processes were not read.",
        "hidden": "Cannot tell what the GPU waits for: no process on it is visible from here.",
        "no_children": "Cannot tell what the GPU waits for: the workers of its process were not read.",
        "no_counters": "Cannot tell: without activity counters (Hopper and later) utilization alone does not say.",
        "": "Cannot tell: no single limit stands out.",
    },
}

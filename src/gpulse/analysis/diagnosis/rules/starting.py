"""starting: a program that has just begun: imports, CUDA context, compilation."""

from __future__ import annotations

from ..rule import DiagnosisRule, found, seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....model.verdict import Verdict
    from ..rule import Case

YOUNG = 120.0  # seconds of running time after which a program is no longer starting
CPU = 0.3  # cores that show it at work


def _judge(case: Case) -> Verdict | None:
    load = case.load
    age = load.process_age
    if not load.tracks or age is None or age >= YOUNG or (load.cpu_tree is not None and load.cpu_tree < CPU):
        return None
    evidence = [
        seen("running_time", age),
        seen("cpu_tree", load.cpu_tree),
        seen("busy", load.busy),
        seen("memory_used", load.high("memory_used")),
    ]
    return found(load, "starting", "medium", evidence, advice=RULE.advice)


RULE = DiagnosisRule(
    "starting",
    "rest",
    "phase",
    _judge,
    part="starting",
    needs=("running_time", "utilization"),
    signature=(
        f"A process younger than {YOUNG:.0f} s holds the GPU, uses the CPU ({CPU:g} cores or more) and has not run steady work on the GPU "
        "yet."
    ),
    blind="A program that by mistake computes on the CPU looks the same in its first two minutes.",
    sources=("gpulse H200 recordings: 5 to 20 s of imports, context and first kernels; compilation takes minutes",),
    advice=("watch_longer", "check_device"),
)

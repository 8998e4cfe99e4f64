"""starting: a program that has just begun: imports, CUDA context, compilation."""

from __future__ import annotations

from ..rule import DiagnosisRule, Span, Verdict, facts, seen

YOUNG = 120.0  # seconds of running time after which a program is no longer starting
CPU = 0.3  # cores that show it at work


def _judge(span: Span) -> Verdict | None:
    age = span.process_age
    if not span.tracks or age is None or age >= YOUNG or (span.cpu_tree is not None and span.cpu_tree < CPU):
        return None
    evidence = [
        seen("running_time", age),
        *facts(span, "cpu_tree", "busy"),
        seen("memory_used", span.high("memory_used")),
    ]
    return RULE.found(span, "medium", evidence)


RULE = DiagnosisRule(
    "starting", "rest", "phase", _judge, part="starting", needs=("running_time", "utilization"),
    advice=("watch_longer", "check_device"),
    signature=(
        f"A process younger than {YOUNG:.0f} s holds the GPU, uses the CPU ({CPU:g} cores or more) and has not run "
        "steady work on the GPU yet."
    ),
    blind="A program that by mistake computes on the CPU looks the same in its first two minutes.",
    sources=("gpulse H200 recordings: 5 to 20 s of imports, context and first kernels; compilation takes minutes",),
)  # fmt: skip

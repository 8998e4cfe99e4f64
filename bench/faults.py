"""Every NVML call that gpulse makes, failed with eight codes or hanging, on one GPU or on all: what `gpulse --json` answers.

python -m bench.faults            # 3 GPUs
python -m bench.faults --gpus 64 --hangs

Checks each answer: the exit code, that other GPUs are as on a healthy machine, that no value is missing without a reason;
and measures how long it takes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.e2e.lab import ROOT, environment
from tests.e2e.test_failing_calls import ANSWERS, LOOKUP, NEEDED, SYSTEM
from tests.fake_nvml import Scenario

CODES = {
    "UNINITIALIZED": 1, "NOT_SUPPORTED": 3, "NO_PERMISSION": 4, "NOT_FOUND": 6, "TIMEOUT": 10, "GPU_IS_LOST": 15,
    "IN_USE": 19, "UNKNOWN": 999,
}  # fmt: skip
DOCUMENTED = {0, 3, 124}
COMPARED = ("utilization", "memory_used", "power_draw", "temperature", "clock_sm", "name", "uuid")


class Case:
    """One fault, and what came of it."""

    def __init__(self, function: str, fault: str, place: str) -> None:
        self.function, self.fault, self.place = function, fault, place
        self.seconds = 0.0
        self.wrong: list[str] = []

    def scenario(self, gpus: int) -> Scenario:
        """Return the machine."""
        whose = (
            {} if self.function in SYSTEM or self.function in NEEDED else {"gpu": 1 if self.place == "one" else "all"}
        )
        what: dict[str, Any] = {"hang": "60s"} if self.fault == "hang" else {"code": CODES[self.fault]}
        return machine(gpus).fault(function=self.function, **whose, **what)

    def check(self, code: int, out: str, err: str, healthy: list[Any]) -> None:
        """Note what is not as documented."""
        if code not in DOCUMENTED or "Traceback" in err:
            self.wrong.append(f"exit {code}: {err[-200:]}")
        if code != 0:
            if out or err.count("\n") != 1:
                self.wrong.append(f"exit {code} without exactly one sentence")
            return
        gpus = json.loads(out)["gpus"]
        if len(gpus) != len(healthy):
            self.wrong.append(f"{len(gpus)} GPUs")
        for at, (gpu, before) in enumerate(zip(gpus, healthy, strict=False)):
            for key in COMPARED:
                if gpu.get(key) is None and key not in gpu["gaps"]:
                    self.wrong.append(f"GPU {at}: {key} is missing without a reason")
                elif key == "memory_used" and gpu["gaps"].get("memory_reserved") == "unsupported":
                    pass  # the first version of the call answers, in which used memory includes what is reserved
                elif gpu.get(key) not in (None, before[key]):
                    self.wrong.append(f"GPU {at}: {key} is {gpu[key]}")
                elif self.place == "one" and self.function in (*ANSWERS, LOOKUP) and at != 1 and gpu[key] is None:
                    self.wrong.append(f"GPU {at}: {key} is missing because of another GPU")


def machine(gpus: int) -> Scenario:
    """Return busy GPUs whose numbers stand still."""
    values: dict[str, Any] = {
        "utilization.gpu": 90,
        "power": "560 W",
        "energy": "5 kJ",
        "temperature": 61,
        "gpm.sm": 78,
        "gpm.latch": 0,
    }
    return Scenario.load("boards/h100").driver(gpus=gpus).gpu(None, **values)


def ask(scenario: Scenario, folder: Path) -> tuple[int, str, str, float]:
    """Run `gpulse --json`; return exit code, output and seconds."""
    env = environment(scenario, folder)
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "gpulse", "--json"],
        env=os.environ | env,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=ROOT,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr, time.perf_counter() - start


def main() -> int:
    """Print a table and everything that is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, default=3)
    parser.add_argument("--hangs", action="store_true", help="hanging calls only")
    parser.add_argument("--side", type=int, default=2, help="questions asked side by side")
    chosen = parser.parse_args()
    faults = ["hang"] if chosen.hangs else [*CODES, "hang"]
    functions = [*ANSWERS, LOOKUP, *SYSTEM, *sorted(NEEDED)]
    cases = [Case(name, fault, place) for name in functions for fault in faults for place in ("one", "all")]
    with TemporaryDirectory() as place, ThreadPoolExecutor(chosen.side) as pool:
        healthy = json.loads(ask(machine(chosen.gpus), Path(place) / "healthy")[1])["gpus"]

        def run(numbered: tuple[int, Case]) -> None:
            number, case = numbered
            code, out, err, case.seconds = ask(case.scenario(chosen.gpus), Path(place) / str(number))
            case.check(code, out, err, healthy)

        list(pool.map(run, enumerate(cases)))
    print(f"{len(cases)} cases on {chosen.gpus} GPUs, {chosen.side} side by side")
    print(
        "| fault | GPUs | cases | wrong | seconds, median | most | over 3 s |\n| --- | --- | --- | --- | --- | --- | --- |"
    )
    for kind in ("error", "hang"):
        for where in ("one", "all"):
            some = [case for case in cases if (case.fault == "hang") == (kind == "hang") and case.place == where]
            if some:
                times = sorted(case.seconds for case in some)
                wrong = sum(bool(case.wrong) for case in some)
                late = sum(seconds > 3 for seconds in times)
                print(
                    f"| {kind} | {where} | {len(some)} | {wrong} | {times[len(times) // 2]:.2f} | {times[-1]:.2f} | {late} |"
                )
    for case in cases:
        if case.wrong or case.seconds > 3:
            print(f"{case.function} {case.fault} {case.place} {case.seconds:.2f} s: {case.wrong[:2]}")
    return int(any(case.wrong for case in cases))


if __name__ == "__main__":
    sys.exit(main())

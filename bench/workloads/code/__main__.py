"""Run one of the programs under a Monitor: `python -m bench.workloads.code metric --seconds 30` prints what was found as JSON."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import time
from typing import Any

from . import gpu as devices

PROGRAMS = (
    *("metric", "item", "collate", "checkpoint", "decode", "augment"),
    *("images", "simulator", "strings", "lock", "pageable", "validation"),
)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("program", choices=PROGRAMS)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--together", action="store_true", help="with a Monitor, and watched from outside, too")
    parser.add_argument("--alone", action="store_true", help="without a Monitor, to be watched from outside")
    arguments = parser.parse_args()
    device = devices.open_gpu(arguments.seconds)
    guilty = devices.Guilty(device)
    program = importlib.import_module(f"bench.workloads.code.{arguments.program}")
    if arguments.alone:
        return _alone(program, device, guilty)
    from gpulse import Monitor
    from gpulse.sinks import Sink

    told: list[str] = []
    if arguments.together:
        _wait()

    class Told(Sink):
        def write(self, sample: object) -> None:
            """Keep only what comes at the end."""

        def summarize(self, text: str) -> None:
            told.append(text)

    with Monitor(Told(), source="nvidia") as monitor:
        started = time.monotonic()
        program.main(device, guilty)
        device.synchronize()
        elapsed = time.monotonic() - started
    summary = monitor.summary()
    assert summary is not None
    found = {
        "truth": guilty.seconds,
        "seconds": elapsed,
        "stretches": guilty.stretches,
        "code": [line.to_plain() for line in summary.code],
    }
    found["told"] = told
    print(json.dumps(found | {"calls": [line.call for line in summary.code], "budget": _budget(summary)}), flush=True)
    if arguments.together:
        sys.stdin.readline()
    return 0


def _alone(program: Any, device: Any, guilty: devices.Guilty) -> int:
    """Run when told to, and stay until told to end."""
    _wait()
    started = time.monotonic()
    program.main(device, guilty)
    device.synchronize()
    print(
        json.dumps(
            {
                "truth": guilty.seconds,
                "seconds": time.monotonic() - started,
                "stretches": guilty.stretches,
                "budget": None,
            }
        ),
        flush=True,
    )
    sys.stdin.readline()
    return 0


def _wait() -> None:
    """Tell whoever watches where the driver is, and wait for a word."""
    print(json.dumps({key: value for key, value in os.environ.items() if key.startswith(("FAKE_", "LD_"))}), flush=True)
    sys.stdin.readline()


def _budget(summary: object) -> float | None:
    diagnosis = getattr(summary, "diagnosis", None)
    budgets = [verdict.budget for verdict in diagnosis or () if verdict.budget is not None]
    return budgets[0].seconds * (1 - budgets[0].work) if budgets else None


if __name__ == "__main__":
    sys.exit(main())

"""Run one of the programs under a Monitor: `python -m bench.workloads.code metric --seconds 30` prints what was found as JSON."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time

from . import gpu as devices

PROGRAMS = (
    *("metric", "item", "collate", "checkpoint", "decode", "augment"),
    *("images", "simulator", "strings", "lock", "pageable", "validation"),
)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("program", choices=PROGRAMS)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--alone", action="store_true", help="without a Monitor, to be watched from outside")
    arguments = parser.parse_args()
    device = devices.open_gpu(arguments.seconds)
    guilty = devices.Guilty(device)
    program = importlib.import_module(f"bench.workloads.code.{arguments.program}")
    if arguments.alone:
        program.main(device, guilty)
        print(json.dumps({"truth": guilty.seconds}))
        return 0
    from gpulse import Monitor

    with Monitor(source="nvidia") as monitor:
        started = time.monotonic()
        program.main(device, guilty)
        device.synchronize()
        elapsed = time.monotonic() - started
    summary = monitor.summary()
    assert summary is not None
    found = {"truth": guilty.seconds, "seconds": elapsed, "code": [line.to_plain() for line in summary.code]}
    print(json.dumps(found | {"calls": [line.call for line in summary.code], "budget": _budget(summary)}))
    return 0


def _budget(summary: object) -> float | None:
    diagnosis = getattr(summary, "diagnosis", None)
    budgets = [verdict.budget for verdict in diagnosis or () if verdict.budget is not None]
    return budgets[0].seconds * (1 - budgets[0].work) if budgets else None


if __name__ == "__main__":
    sys.exit(main())

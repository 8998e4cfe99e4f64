"""`python -m bench.workloads NAME`: run one workload; `--record FOLDER NAMES…`: record several, one file each."""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile

from .run import Run, say
from .table import WORKLOADS


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.workloads", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="a workload; none lists them all")
    parser.add_argument("--seconds", type=float, help="duration of the workload itself (default: from the table)")
    parser.add_argument("--device", default="cuda", help="cuda, or cpu for a dry run (default: cuda)")
    parser.add_argument(
        "--record", metavar="FOLDER", help="record each workload to FOLDER/NAME.ndjson.gz, and LABELS.jsonl"
    )
    parser.add_argument("--monitor", action="store_true", help="run inside a gpulse.Monitor and print its verdict")
    parser.add_argument("--source", default="auto", help="with --record: the source gpulse reads (default: auto)")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.names if name not in WORKLOADS]:
        parser.error(f"unknown workload {unknown[0]!r}")
    if not arguments.names and not arguments.record:
        for name, row in WORKLOADS.items():
            print(f"{name:18} {row.verdicts[0]:24} {row.expert}")
        return 0
    if arguments.record:
        from .record import record

        names = arguments.names or list(WORKLOADS)
        return record(arguments.record, names, arguments.device, arguments.seconds, arguments.source)
    if arguments.monitor:
        return _monitored(arguments.names[0], arguments.seconds, arguments.device)
    return _run(arguments.names[0], arguments.seconds, arguments.device)


def _monitored(name: str, seconds: float | None, device: str) -> int:
    import gpulse

    with gpulse.Monitor(interval=0.2) as monitor:
        code = _run(name, seconds, device)
    summary = monitor.summary()
    found = None if summary is None else summary.diagnosis
    say(event="verdict", verdict=found[0].to_plain() if found else None)
    return code


def _run(name: str, seconds: float | None, device: str) -> int:
    row = WORKLOADS[name]
    with tempfile.TemporaryDirectory() as folder:
        run = Run(row.seconds if seconds is None else seconds, device, folder)
        try:
            getattr(importlib.import_module(f"bench.workloads.{row.module}"), name)(run)
        except Exception as error:
            if "out of memory" not in str(error):
                raise
            say(event="error", text=str(error))
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

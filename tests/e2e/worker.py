"""Answers questions about scripted machines: gpulse is imported once, and each question gets a fork of its own."""

from __future__ import annotations

import atexit
import ctypes
import gc
import json
import os
import struct
import sys
import threading
from importlib import import_module
from typing import Any

from gpulse.cli.commands import status as status
from gpulse.cli.main import main as gpulse
from gpulse.model.catalog import GPU_METRICS
from gpulse.model.codec import to_plain
from gpulse.model.select import EVERYTHING, Wanted
from gpulse.sampling.sampler import Sampler
from gpulse.sources.nvidia.source import NvidiaSource

for name in (
    "argparse",
    "locale",
    "pwd",
    "shutil",
    "gpulse.cli.session",
    "gpulse.serving.watch",
    "gpulse.serving.tracking",
    "gpulse.sources.containers",
    "gpulse.sources.slurm",
    "gpulse.surfaces.status.view",
):
    import_module(name)  # before any fork, so that no question pays for it


def at(seconds: float) -> None:
    """Set the scenario's clock."""
    with open(os.environ["FAKE_NVML_CLOCK"], "r+b") as file:
        file.write(struct.pack("d", seconds))


def sampler(wanted: Wanted = EVERYTHING, **options: Any) -> Sampler:
    """An open sampler over the scripted machine."""
    return Sampler(NvidiaSource(os.environ.get("GPULSE_ROOT", "")), wanted, **options).open()


def sample(over: Sampler) -> Any:
    """One look as plain data."""
    return to_plain(over.read())


def say(value: object) -> None:
    """The answer."""
    print(json.dumps(value))


NAMES = {
    "NvidiaSource": NvidiaSource,
    "Wanted": Wanted,
    "GPU_METRICS": GPU_METRICS,
    "at": at,
    "sampler": sampler,
    "sample": sample,
    "say": say,
    "os": os,
}


def answer(request: dict[str, Any]) -> int:
    """Run one question in this, forked, process."""
    os.environ.clear()
    os.environ.update(request["environment"])
    for number, name in ((0, os.devnull), (1, request["out"]), (2, request["err"])):
        os.dup2(os.open(name, os.O_RDWR | os.O_CREAT, 0o644), number)
    if request["library"]:
        ctypes.CDLL(request["library"])  # a later load by soname finds this one
    if request["code"] is None:
        return gpulse(request["arguments"])
    exec(compile(request["code"], "<question>", "exec"), dict(NAMES))
    return 0


def end(code: int) -> None:
    """End as Python does, but without taking all modules apart, which takes longer than most answers."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    ctypes.CDLL(None).exit(code)  # unlike `os._exit` it lets the scripted driver write its calls


def serve() -> int:
    """Answer one question a line until there are no more."""
    gc.freeze()  # a collection in a fork would copy every page
    for line in iter(sys.stdin.readline, ""):
        if (child := os.fork()) == 0:
            code = answer(json.loads(line))
            end(code)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(serve())

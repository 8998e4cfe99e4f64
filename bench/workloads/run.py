"""The frame of one workload: which device, how large, how long, and when the workload itself began and ended."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator


class Run:
    """One run of a workload. Sizes come in pairs: for a data-center GPU, and for a dry run on a CPU."""

    def __init__(self, seconds: float, device: str, folder: str) -> None:
        self.seconds = seconds
        self.device = device
        self.folder = folder
        self.on_gpu = device != "cpu"

    def size(self, full: int, dry: int) -> int:
        """Return the size for this device."""
        return full if self.on_gpu else dry

    def share(self, part: float, dry: float = 0.2) -> float:
        """Return a duration in seconds; dry runs take short ones."""
        return part if self.on_gpu else min(part, dry)

    def steps(self) -> Iterator[int]:
        """Yield step numbers until the time is over; the first one marks the end of the start-up."""
        end = time.monotonic() + self.seconds
        say(event="begin")
        number = 0
        while time.monotonic() < end:
            yield number
            number += 1
        self.wait()
        say(event="end", steps=number)

    def wait(self) -> None:
        """Wait for the device, where torch drives one."""
        torch = sys.modules.get("torch")
        if self.on_gpu and torch is not None and torch.cuda.is_initialized():
            torch.cuda.synchronize()


def say(**facts: object) -> None:
    """Print one JSON line with the time: the recorder reads when the workload began and ended."""
    print(json.dumps({"time": time.time(), **facts}), flush=True)

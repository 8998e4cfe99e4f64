"""What one sample of an AMD or Intel GPU costs: trees of files in a folder, so the driver's own work is not in it.

`python -m bench.vendors` prints the table. `status` reads what the status view asks for, `everything` all metrics.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from gpulse.model.catalog import GPU_METRICS
from gpulse.model.select import EVERYTHING
from gpulse.sources.base import Source
from gpulse.sources.registry import make_source
from gpulse.surfaces.status import GLANCE
from tests.unit.sources.amd.cards import radeon
from tests.unit.sources.intel.cards import SLOT, arc, client
from tests.unit.sources.trees import packed, write_tree

CLIENTS, OTHERS = 20, 300
ROUNDS, TIMES = 9, 200


def fast(keys: frozenset[str]) -> frozenset[str]:
    """Return the metrics that are read at every sample."""
    return frozenset(key for key in keys if GPU_METRICS[key].cost == "fast" and GPU_METRICS[key].kind != "identity")


def microseconds(work: Callable[[], object]) -> float:
    """Return the CPU time of one call, the median of some rounds."""
    rounds = []
    for _ in range(ROUNDS):
        start = time.process_time()
        for _ in range(TIMES):
            work()
        rounds.append(1e6 * (time.process_time() - start) / TIMES)
    return median(rounds)


def with_clients(root: Path) -> Path:
    """Add processes that use the GPU, and many more that do not."""
    for at in range(CLIENTS):
        lines = {f"drm_cycles_{engine}": "1000" for engine in ("rcs", "bcs", "vcs", "vecs", "ccs")}
        totals = {f"drm_total_cycles_{engine}": "9000" for engine in ("rcs", "bcs", "vcs", "vecs", "ccs")}
        memory = {f"drm_{kind}_vram0": "64 MiB" for kind in ("total", "shared", "active", "resident", "purgeable")}
        names = {"drm_driver": "xe", "drm_pdev": SLOT, "drm_client_id": str(at)}
        write_tree(root, client(2000 + at, 5, **names, **lines, **totals, **memory))
    write_tree(root, {f"proc/{5000 + at}/fd/0": "->/dev/null" for at in range(OTHERS)})
    return root


def reader(source: Source, keys: frozenset[str], process_keys: frozenset[str] | None) -> Callable[[], object]:
    """Return a function that takes one sample."""
    source.open()
    (device,) = source.devices

    def read() -> object:
        source.refresh()
        return device.read(keys, process_keys)

    read()
    return read


def main() -> None:
    processes = frozenset({"pid", "type", "memory_used", "sm_utilization"})
    with tempfile.TemporaryDirectory() as folder:
        amd = radeon(Path(folder) / "amd", gpu_metrics=packed((1, 3), 120, {4: ("H", 45), 112: ("Q", 0)}))
        intel = with_clients(arc(Path(folder) / "intel"))
        rows = [
            ("Radeon, status", f"amd:{amd}", fast(GLANCE.gpu), None),
            ("Radeon, everything", f"amd:{amd}", fast(EVERYTHING.gpu), None),
            ("Arc, status", f"intel:{intel}", fast(GLANCE.gpu), None),
            (
                f"Arc with {CLIENTS} clients among {CLIENTS + OTHERS} processes",
                f"intel:{intel}",
                fast(GLANCE.gpu),
                processes,
            ),
        ]
        print("| one sample | µs |\n| --- | --- |")
        for title, name, keys, process_keys in rows:
            print(f"| {title} | {microseconds(reader(make_source(name), keys, process_keys)):.0f} |")


if __name__ == "__main__":
    main()

"""gpulse: monitor GPUs, and find out what limits them.

Importing this package is free: every public name is loaded at its first use.
"""

from __future__ import annotations

import sys

# Type checkers and editors read __init__.pyi, which `make docs` generates from this table.
_HOMES = {
    "snapshot": "api",
    "stream": "api",
    "gpus": "api",
    "visible_gpus": "api",
    "pick": "api",
    "diagnose": "api",
    "fleet": "remote.settings",
    "open_recording": "recordings.recording",
    "Recording": "recordings.recording",
    "Monitor": "monitor.monitor",
    "measure": "monitor.measure",
    "measurements": "monitor.measure",
    "print_utilization": "monitor.report",
    "explain_oom": "monitor.out_of_memory",
    "oom_report": "monitor.out_of_memory",
    "widget": "surfaces.notebook.widget",
    "Snapshot": "model.snapshot",
    "Gpu": "model.catalog",
    "Process": "model.catalog",
    "Host": "model.catalog",
    "Event": "model.event",
    "GpulseError": "errors",
    "SourceUnavailable": "errors",
    "DriverTimeout": "errors",
    "UsageError": "errors",
    "UnknownMetric": "errors",
    "UnknownGpu": "errors",
    "NoFreeGpu": "errors",
    "RecordingError": "errors",
    "ConfigError": "errors",
    "__version__": "_version",
}
__all__ = list(_HOMES)  # a single table of names
_HOOKS = {  # looked up by IPython, and by values that render themselves in notebooks
    "load_ipython_extension": "surfaces.notebook.magics",
    "unload_ipython_extension": "surfaces.notebook.magics",
    "diagnosis_html": "present.html",
    "snapshot_html": "present.html",
    "summary_html": "present.html",
}


def __getattr__(name: str) -> object:
    if name in ("sinks", "callbacks", "sources", "testing"):
        return __import__(f"gpulse.{name}", fromlist=[name])  # subpackages, available without importing them first
    from .lazy import load_public

    return load_public(__name__, name, _HOMES | _HOOKS)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})


# A spawned worker of a data loader imports the program again, and with it this: only so it can tell a Monitor what it executes.
if getattr(getattr(sys.modules.get("multiprocessing.process"), "_current_process", None), "_inheriting", False):
    __import__("gpulse.monitor.worker_stacks", fromlist=["follow_spawned"]).follow_spawned()

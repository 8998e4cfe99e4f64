"""gpulse: monitor GPUs, and find out what limits them.

Importing this package is free: every public name is loaded at its first use.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import callbacks as callbacks
    from . import sinks as sinks
    from . import sources as sources
    from . import testing as testing
    from ._version import __version__ as __version__
    from .api import diagnose as diagnose
    from .api import gpus as gpus
    from .api import pick as pick
    from .api import snapshot as snapshot
    from .api import stream as stream
    from .api import visible_gpus as visible_gpus
    from .errors import ConfigError as ConfigError
    from .errors import DriverTimeout as DriverTimeout
    from .errors import GpulseError as GpulseError
    from .errors import NoFreeGpu as NoFreeGpu
    from .errors import RecordingError as RecordingError
    from .errors import SourceUnavailable as SourceUnavailable
    from .errors import UnknownGpu as UnknownGpu
    from .errors import UnknownMetric as UnknownMetric
    from .errors import UsageError as UsageError
    from .model.catalog import Gpu as Gpu
    from .model.catalog import Host as Host
    from .model.catalog import Process as Process
    from .model.event import Event as Event
    from .model.snapshot import Snapshot as Snapshot
    from .monitor.glance import print_utilization as print_utilization
    from .monitor.measure import measure as measure
    from .monitor.measure import measurements as measurements
    from .monitor.monitor import Monitor as Monitor
    from .monitor.out_of_memory import explain_oom as explain_oom
    from .monitor.out_of_memory import oom_report as oom_report
    from .present.html import diagnosis_html as diagnosis_html
    from .present.html import snapshot_html as snapshot_html
    from .present.html import summary_html as summary_html
    from .recordings.recording import Recording as Recording
    from .recordings.recording import open_recording as open_recording
    from .surfaces.notebook.magics import load_ipython_extension as load_ipython_extension
    from .surfaces.notebook.magics import unload_ipython_extension as unload_ipython_extension
    from .surfaces.notebook.widget import widget as widget

_HOMES = {
    "snapshot": "api",
    "stream": "api",
    "gpus": "api",
    "visible_gpus": "api",
    "pick": "api",
    "diagnose": "api",
    "open_recording": "recordings.recording",
    "Recording": "recordings.recording",
    "Monitor": "monitor.monitor",
    "measure": "monitor.measure",
    "measurements": "monitor.measure",
    "print_utilization": "monitor.glance",
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


if not TYPE_CHECKING:  # else a misspelled name would be an object to type checkers

    def __getattr__(name: str) -> object:
        if name in ("sinks", "callbacks", "sources", "testing"):
            return __import__(f"gpulse.{name}", fromlist=[name])  # subpackages, available without importing them first
        home = _HOMES.get(name) or _HOOKS.get(name)
        if home is None:
            raise AttributeError(f"module 'gpulse' has no attribute {name!r}")
        found = getattr(__import__(f"gpulse.{home}", fromlist=[name]), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})

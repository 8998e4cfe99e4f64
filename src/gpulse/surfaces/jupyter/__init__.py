"""gpulse in JupyterLab and Notebook 7: a Jupyter server extension on top of gpulse.live, and the files of the lab extension.

handlers (configuration, requests, the stream, worker threads), kernels (which notebook uses which GPU), cells (what
its cells took over time), own_pages (requests of other servers' pages are refused).
May import: everything below surfaces, jupyter_server, tornado, traitlets, asyncio. Never here: another surface, or a call in the event
loop that samples or reads a disk.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _jupyter_server_extension_points() -> list[dict[str, Any]]:
    """Return the extension that Jupyter Server loads."""
    from .handlers import GpulseExtension

    return [{"module": "gpulse.surfaces.jupyter", "app": GpulseExtension}]


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    """Return the location of the lab extension, for `jupyter labextension develop`."""
    return [{"src": "labextension", "dest": "gpulse"}]

"""gpulse in JupyterLab and Notebook 7: a Jupyter server extension over gpulse.live, and the files of the lab extension.

extension (the app that Jupyter loads), handlers (requests and the stream), kernels (which notebook uses which GPU).
May import: everything below surfaces, jupyter_server, tornado, traitlets, asyncio. Never here: another surface, or the driver in the
event loop: what samples or reads a disk does so in threads.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _jupyter_server_extension_points() -> list[dict[str, Any]]:
    """Return what Jupyter loads."""
    from .extension import GpulseExtension

    return [{"module": "gpulse.surfaces.jupyter", "app": GpulseExtension}]


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    """Return where the lab extension is, for `jupyter labextension develop`."""
    return [{"src": "labextension", "dest": "gpulse"}]

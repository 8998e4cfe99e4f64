"""The kinds of servers that gpulse knows, one module each; a new one is a module with a KIND and its name in this table.

In another package, an entry point in the group `gpulse.serving` names a `Kind`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..kind import Kind

# Order matters for answers that could be of several: nim, which has no prefix, comes last.
MODULES = ("vllm", "sglang", "tgi", "llama_cpp", "triton", "ollama", "nim")


def kinds() -> list[Kind]:
    """Return the kinds of this package."""
    from importlib import import_module

    return [import_module(f"{__name__}.{name}").KIND for name in MODULES]


def plugin_kinds() -> Iterator[Kind]:
    """Yield the kinds of plug-ins; one that does not work is left out (`gpulse doctor` says why)."""
    from ...plugins import SERVING, BrokenPlugin, plugins
    from ..kind import Kind

    for plugin in plugins(SERVING):
        try:
            loaded = plugin.load()
        except BrokenPlugin:
            continue
        if isinstance(loaded, Kind):
            yield loaded

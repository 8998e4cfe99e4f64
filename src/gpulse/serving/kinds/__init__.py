"""The kinds of servers that gpulse knows, one module each; a new one is a module with a KIND and its name in this table.

In another package, an entry point in the group `gpulse.serving` names a function that returns a `Kind`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..kind import Kind

# Order matters for answers that could be of several: nim, which has no prefix, comes last.
MODULES = ("vllm", "sglang", "tgi", "llama_cpp", "triton", "ollama", "gpulse_serve", "nim")


def kinds() -> list[Kind]:
    """Return the kinds of this package."""
    from importlib import import_module

    return [import_module(f"{__name__}.{name}").KIND for name in MODULES]


def plugin_kinds() -> Iterator[Kind]:
    """Yield the kinds of plug-ins; one that does not work is left out (`gpulse doctor` says why)."""
    from ...plugins import SERVING, plugins
    from ..kind import Kind

    for plugin in plugins(SERVING):
        try:
            made = plugin.load()()
        except (Exception, SystemExit):  # noqa: BLE001  # foreign code, in the thread that asks all servers
            continue
        if isinstance(made, Kind):
            yield made

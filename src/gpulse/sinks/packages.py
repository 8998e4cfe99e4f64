"""Packages that sinks use, imported only when such a sink is opened."""

from __future__ import annotations

from ..errors import GpulseError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def load(module: str, package: str) -> Any:
    """Return a module of another package; raise GpulseError with how to install it if it is missing."""
    try:
        found = __import__(module, fromlist=["__name__"])
    except ImportError as error:
        if not isinstance(error, ModuleNotFoundError) or error.name != module.partition(".")[0]:
            raise GpulseError(f"{package} cannot be loaded: {error}.", f"Run `pip install -U {package}`.") from None
        found = None
    if getattr(found, "__file__", None) is None:  # only a folder of that name: W&B creates one in every project
        raise GpulseError(f"{package} is not installed.", f"Run `pip install {package}`.")
    return found

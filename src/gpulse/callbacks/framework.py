"""Frameworks that callbacks use; users install them themselves."""

from __future__ import annotations

import sys

from ..errors import GpulseError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class MissingFramework(GpulseError, ImportError):
    """A framework that is not installed or cannot be loaded; also an ImportError."""


def framework(module: str, package: str) -> Any:
    """Import and return one module of a framework; raise MissingFramework with what to do if it is missing."""
    try:
        __import__(module)
    except ImportError as error:
        if (
            isinstance(error, ModuleNotFoundError)
            and error.name is not None
            and f"{module}.".startswith(f"{error.name}.")
        ):
            raise MissingFramework(f"{package} is not installed.", f"Run `pip install {package}`.") from None
        raise MissingFramework(f"{package} cannot be loaded: {error}.", f"Run `pip install -U {package}`.") from None
    return sys.modules[module]

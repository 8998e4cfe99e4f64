"""The frameworks that callbacks belong to, which are the user's own and never installed by us."""

from __future__ import annotations

import sys

from ..errors import GpulseError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class MissingFramework(GpulseError, ImportError):
    """A framework that is not installed or cannot be loaded; an ImportError too, since an import is what fails."""


def framework(module: str, package: str) -> Any:
    """Return a module of a framework and load no more of it; raise MissingFramework, with what to do, when it is not there."""
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

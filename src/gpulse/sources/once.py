"""`once`: an attribute found out at its first use.

functools.cached_property holds one lock for all instances before Python 3.12: one GPU whose driver hangs would stop the others.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from functools import cached_property as once
else:

    class once:  # noqa: N801  # it is used like a keyword
        """Call the function at the first sample and keep its answer on the instance."""

        def __init__(self, find):
            self._find = find

        def __set_name__(self, owner, name):
            self._name = name

        def __get__(self, instance, owner):
            value = instance.__dict__[self._name] = self._find(instance)
            return value


__all__ = ["once"]

"""`once`: an attribute computed at its first use.

functools.cached_property uses one lock for all instances before Python 3.12: one hanging GPU would block the others.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from functools import cached_property as once
else:

    class once:  # noqa: N801  # it is used like a keyword
        """Call the function at the first access and keep its result on the instance."""

        def __init__(self, find):
            self._find = find

        def __set_name__(self, owner, name):
            self._name = name

        def __get__(self, instance, owner):
            value = instance.__dict__[self._name] = self._find(instance)
            return value


__all__ = ["once"]

"""What a forked child must forget: modules that another thread of its parent was importing at that moment."""

from __future__ import annotations

import sys
import threading


def forget_half_imported() -> None:
    """Remove modules that a thread of the parent was importing, so that the child can import them itself.

    That thread does not exist in the child: without this, the child would wait forever for its lock, or get half a module.
    gpulse imports in a thread, so that a program does not wait for it, and thus owes its children this.
    """
    locks = getattr(sys.modules.get("_frozen_importlib"), "_module_locks", {})
    for name, reference in [*locks.items()]:
        owner = getattr(reference(), "owner", None)
        if owner is not None and owner != threading.get_ident():
            del locks[name]
            if getattr(getattr(sys.modules.get(name), "__spec__", None), "_initializing", False):
                del sys.modules[name]

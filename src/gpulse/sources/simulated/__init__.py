"""A simulated machine with eight GPUs, each with its own scenario: used by `--demo` and by tests of views.

May import sources.base and model. Accesses no hardware and no files, never sleeps, and has no state that a read changes.
"""

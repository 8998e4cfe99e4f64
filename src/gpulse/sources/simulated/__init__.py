"""A made-up machine with eight GPUs and a story on each: what `--demo` shows and what tests of views look at.

May import: sources.base and model. Never here: hardware, files, sleeping, state that a read changes.
"""

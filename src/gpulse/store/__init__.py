"""Bytes on disk: recordings of snapshots, the history of a machine, settings, claims on GPUs.

May import: model. Never here: where the snapshots come from, or who looks at them.
"""

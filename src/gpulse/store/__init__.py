"""Bytes on disk: recordings of snapshots, one a line.

May import: model. Never here: where the snapshots come from, or who looks at them.
"""

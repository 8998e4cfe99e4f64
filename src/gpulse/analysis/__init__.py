"""What follows from snapshots taken one after another: pure, and the same for live GPUs and for recordings.

May import: store, model. Never here: how a snapshot is taken, or how a verdict is shown.
"""

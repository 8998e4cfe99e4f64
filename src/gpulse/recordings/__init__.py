"""Recordings from Python: samples by index and time, their events, and tables for pandas and polars.

May import: analysis, sinks, store and below. Never here: how recordings are written (`store`) or played (`sources.replay`).
"""

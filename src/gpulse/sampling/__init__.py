"""Sampling: when to read a source, with which deadline, how counters become rates, and who receives the snapshot.

May import sources, store and model. Contains no drivers and no formatting.
"""

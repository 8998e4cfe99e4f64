"""Time: when to ask a source, with which deadline, how counters become rates, and who gets the snapshot.

May import: sources, store, model. Never here: drivers, formatting.
"""

"""Where readings come from: the only folder that touches hardware, drivers, /proc and /sys.

May import: store, model, units, errors. Never here: formatting, rates over time, threads.
"""

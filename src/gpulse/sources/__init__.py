"""Sources of values: the only folder that accesses hardware, drivers, /proc and /sys.

May import store, model, units and errors. Contains no formatting, no rates and no threads.
"""

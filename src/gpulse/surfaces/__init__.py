"""Things people look at; each alone in its room.

May import: monitor, sinks, analysis, present, sampling and below. Never here: drivers, options of the command line.
"""

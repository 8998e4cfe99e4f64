"""From values to words: text, severity, bars, colors and lines; pure functions.

May import: model, units. Never here: terminals, files, sources.
"""

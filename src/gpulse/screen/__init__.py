"""A terminal as a screen: cells in memory, their difference as output, keys and mouse as events, raw mode.

May import: present and below. Never here: what is drawn.
"""

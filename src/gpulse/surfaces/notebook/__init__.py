"""gpulse inside a notebook: the magics %gpulse and %%gpulse, charts as images, and the live widget.

May import: everything below surfaces; IPython and anywidget inside functions. Never here: another surface, or a server.
"""

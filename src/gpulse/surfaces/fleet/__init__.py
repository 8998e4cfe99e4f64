"""Many machines on one screen.

May import: present, analysis, model. Never here: how a machine is reached.
"""

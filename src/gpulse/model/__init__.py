"""What is known about a GPU, a process and a machine: the catalog, the snapshot and their text form.

May import: units and errors. Never here: I/O, drivers, formatting for people.
"""

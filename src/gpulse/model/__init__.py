"""The data model of GPUs, processes and the host: the catalog, the snapshot and their JSON form.

May import units and errors. Contains no I/O, no drivers and no formatting for people.
"""

"""One file per verb: its options and the call to its surface.

May import cli.options, surfaces and everything below, but never another verb.
"""

"""One file a verb: its options, and the hand-over to a surface.

May import: cli.options, surfaces and below. Never here: another verb.
"""

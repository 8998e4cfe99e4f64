"""The command line: verbs, their options, and the way from an error to an exit code.

May import: everything below. Never here: work; a verb's file hands over to a surface.
"""

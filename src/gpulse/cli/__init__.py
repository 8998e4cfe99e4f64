"""The command line: verbs, their options, and the mapping from errors to exit codes.

May import every layer below. Contains no logic of its own: each verb calls a surface.
"""

"""Recordings played as a source.

May import: store and below. Never here: who looks, or how it is shown.
"""

"""Recordings as a source.

May import store and below.
"""

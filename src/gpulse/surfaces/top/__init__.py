"""The live screen: a painter from state to a grid, a diff, one write a frame; keys and mouse change the state.

May import: analysis, present, sampling and below. Never here: drivers, other surfaces.
"""

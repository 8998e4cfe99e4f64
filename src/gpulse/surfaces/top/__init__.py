"""The live screen: a painter from state to grid, a diff, and one write per frame; keys and mouse change the state.

May import analysis, present, sampling and below, but no drivers and no other surfaces.
"""

"""Panels: each a function `paint(grid, area, state)` that draws one part of the screen and changes nothing."""

"""Twelve training programs with a line that keeps the GPU waiting, marked `# guilty`, in the shapes that tutorials have.

Each has `main(gpu, guilty)`: it trains for some seconds on a `gpu`, and measures how long the guilty line takes with `guilty`.
"""

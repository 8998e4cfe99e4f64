"""Tools for assistants, over the Model Context Protocol: what the GPUs do, and why; read-only.

May import: everything below surfaces, mcp, anyio. Never here: another surface, or anything that changes the machine.
"""

"""Model servers: which of the processes on the GPUs serve models, what they say of themselves, and what that means per GPU.

May import sources, store and model. Asks over HTTP, in a thread of its own; one module of `kinds` per kind of server.
"""

"""Model servers: which of the processes on the GPUs serve models, what they say of themselves, and what that means per GPU.

May import sources, store and model. Asks over HTTP, in a thread of its own; `kinds` has what each kind of server reports, as data.
"""

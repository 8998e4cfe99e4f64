"""The server of `gpulse serve`: a page, JSON, a stream of samples and Prometheus' text, all from one sampler.

answers (JSON, files and streams), gate (which requests are let in), server (paths → answers in worker threads),
access (sockets, tokens, sessions), running (uvicorn).
May import: everything below surfaces, starlette, uvicorn, asyncio. Never here: another surface; cli/commands/serve.py composes them.
"""

"""The server of `gpulse serve`: a page, JSON, a stream of samples and Prometheus' text, all from one sampler.

hub (threads: snapshots → bytes) → streams (the event loop: bytes → clients); api, past (worker threads) answer questions; gate lets in.
May import: everything below surfaces, starlette, uvicorn, asyncio. Never here: another surface; cli/commands/serve.py composes them.
"""

"""An HTTP/1.1 server on asyncio and httptools: requests in, responses and chunked streams out.

Shared by all that listens: the embedded control plane and the scheduler's own pages. Of Kubernetes it knows one thing,
that refusals are Status objects.
"""

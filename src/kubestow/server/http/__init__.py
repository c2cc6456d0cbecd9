"""An HTTP/1.1 server on asyncio and httptools: requests in, responses and chunked streams out.

Used by the embedded control plane and by the server of the scheduler's pages. Its only dependency on Kubernetes is that
errors are Status objects.
"""

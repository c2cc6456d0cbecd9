"""HTTP/1.1 on asyncio and httptools: requests in, responses and chunked streams out; nothing about Kubernetes."""
